"""Utterances with pauses in the middle, always the same: people and voices at hand, cut between two words.

A pause is made of the recording's own background, not of zeros. Where a recording has none (a synthetic
voice), the noise of a quiet room lies under everything.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from tests.fakes.human_clips import human_clips

from ondam.audio.resample import resampled
from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.types import HEARING_RATE_HZ, Audio, Language, Samples

Voice: TypeAlias = Literal["human", "piper", "espeak"]

PAUSES_S = (0.3, 0.6, 1.0, 1.5)

LEAD_S = 0.7
TRAIL_S = 3.0
"""Of background before and after: longer than any window that is tried."""

BACKGROUND = HEARING_RATE_HZ // 10
"""Samples of a recording that its background is taken from."""

ABOVE_BACKGROUND_DB = 15.0
"""What is so much louder than the background, and no more than 40 dB below the loudest, is voice. (40 dB
alone, as a turn's figures have it, lies below the background of most of these recordings.)"""

EDGE_S = 0.25
"""No pause so close to an end of a text said by a synthetic voice."""

BLOCK = HEARING_RATE_HZ // 100

KEPT = HEARING_RATE_HZ // 20
"""Samples."""

FADE = 160
"""Samples over which voice becomes background and back: 10 ms, so that a cut is no click."""

SEARCH = 960
"""Samples around the word boundary in which the quietest moment is looked for: a recognizer's times are that
inexact."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A recording or a text to be said, and where it may be interrupted."""

    name: str
    cuts_s: tuple[float, ...]
    """Ends of words, in seconds of the recording (whisper-base's word times)."""
    begins_s: float = 0.0
    ends_s: float = 1e9


ENGLISH_BY_PEOPLE = (
    Sentence("librivox-0870", (1.50, 2.56, 3.36, 4.22)),
    Sentence("librivox-0880", (0.80, 2.02, 0.52, 2.28)),
    Sentence("librivox-0890", (2.00, 3.28, 1.16, 4.34)),
    Sentence("librivox-0920", (2.34, 3.60, 0.84, 4.78)),
    Sentence("librivox-0930", (0.86, 1.62, 2.14, 0.58)),
    Sentence("jfk", (6.24, 2.10, 5.76, 1.20), 0.0, 7.5),
    Sentence("jfk", (9.04, 9.56, 8.76, 9.32), 7.6, 10.5),  # after that he takes a breath
    Sentence("two_cities", (1.88, 3.62, 2.50, 1.28), 0.6, 4.65),
    Sentence("two_cities", (5.58, 7.22, 6.06, 6.84), 4.8, 8.2),
    Sentence("two_cities", (9.62, 11.66, 10.04, 10.96), 8.4, 12.9),
    Sentence("two_cities", (14.12, 15.76, 14.54, 15.34), 13.2, 16.6),
    Sentence("two_cities", (18.18, 19.62, 18.60, 17.76), 17.0, 20.5),
    Sentence("two_cities", (21.86, 23.22, 22.56, 22.92), 20.9, 24.15),
    Sentence("two_cities", (25.16, 27.46, 25.88, 26.94), 24.35, 28.4),
    Sentence("two_cities", (30.32, 34.48, 37.34, 38.24), 28.65, 41.7),
)

ENGLISH_BY_PIPER = (
    Sentence("week", (0.78, 1.10, 1.42, 1.26)),
    Sentence("planet", (0.90, 1.20, 1.68, 0.74)),
    Sentence("sky", (0.78, 0.92, 1.18, 0.62)),
    Sentence("capital", (0.90, 1.26, 1.64, 0.74)),
    Sentence("sun", (1.04, 1.26, 1.64, 0.90)),
    Sentence("plants", (1.06, 0.72, 1.34, 0.56)),
)

KOREAN = (
    "내일 아침 회의가 몇 시에 시작하는지 알려 주세요.",
    "거실 불을 끄고 침실 온도를 이십 도로 맞춰 줘.",
    "서울에서 부산까지 기차로 얼마나 걸리는지 알고 싶어요.",
    "오늘 저녁에 비가 온다고 했는데 우산을 챙겨야 할까요?",
    "엄마한테 조금 늦는다고 문자를 보내 줘.",
    "지난주에 들었던 그 노래를 다시 틀어 주세요.",
    "다음 주 금요일 오후 세 시에 치과 예약을 잡아 줘.",
    "김치찌개를 끓이려고 하는데 뭐부터 준비하면 될까?",
    "우리나라에서 가장 높은 산이 어디인지 말해 주세요.",
    "알람을 여섯 시 반으로 바꾸고 소리를 줄여 줘.",
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """Somebody speaks once. All positions are samples of ``samples`` (16 kHz mono)."""

    name: str
    language: Language
    voice: Voice
    pause_s: float
    """Length of the pause that was put in; 0 for none."""
    samples: Samples
    begins: int
    """The first sample of the first 10 ms with a voice in it."""
    ends: int
    """Just past the last 10 ms with a voice in it."""
    pause: tuple[int, int]
    """First sample without voice in the pause that was put in, and the first one with voice after it. The
    same twice for none."""

    @property
    def audio(self) -> Audio:
        """As sound."""
        return Audio(self.samples, HEARING_RATE_HZ)


def english() -> Iterator[Utterance]:
    """Each sentence whole, and once with each pause, at another place each time."""
    by_name = {clip.name: clip.audio.samples for clip in human_clips()}
    for sentence in ENGLISH_BY_PEOPLE:
        recording = by_name[sentence.name]
        yield from _paused(sentence, recording, "en", "human", Room(quietest(recording)))
    shipped = {clip.name.removesuffix(".wav"): clip.wav for clip in clips("en")}
    for number, sentence in enumerate(ENGLISH_BY_PIPER):
        spoken = resampled(decode(shipped[sentence.name], 10**7), HEARING_RATE_HZ).samples
        yield from _paused(sentence, in_a_room(spoken, seed=number), "en", "piper", QUIET_ROOM)


def korean(python: Path) -> Iterator[Utterance]:
    """The same from espeak-ng; ``python``: the interpreter of the espeak engine's environment."""
    for number, (audio, words_s) in enumerate(spoken_korean(python, KOREAN)):
        spoken = in_a_room(audio.samples, seed=100 + number)
        places = [word for word in words_s if EDGE_S < word < audio.seconds - EDGE_S]
        # In turn, so that each pause meets other places.
        cuts = tuple(places[(number + place) % len(places)] for place in range(len(PAUSES_S)))
        yield from _paused(Sentence(f"ko-{number:02d}", cuts), spoken, "ko", "espeak", QUIET_ROOM)


def interrupted(sentence: Sentence, recording: Samples, pause_s: float) -> Utterance:
    """The sentence with a pause of ``pause_s`` at the first of its places."""
    return _Speech(sentence, recording, Room(quietest(recording))).paused(
        "en", "human", pause_s, sentence.cuts_s[0]
    )


def spoken_korean(python: Path, texts: Sequence[str]) -> Iterator[tuple[Audio, tuple[float, ...]]]:
    """Each text as espeak-ng says it, at 16 kHz, and the seconds at which its words after the first begin."""
    script = Path(__file__).with_name("espeak_words.py")
    said = subprocess.run([str(python), str(script), *texts], check=True, stdout=subprocess.PIPE)
    for line in said.stdout.decode().splitlines():
        told = json.loads(line)
        samples = np.frombuffer(base64.b64decode(told["pcm"]), "<i2").astype(np.int16)
        words_s = tuple(word / told["rate_hz"] for word in told["words"])
        yield resampled(Audio(samples, told["rate_hz"]), HEARING_RATE_HZ), words_s


def in_a_room(samples: Samples, *, seed: int) -> Samples:
    """The same over the noise of a quiet room."""
    louder = samples.astype(np.int32) + QUIET_ROOM.noise(len(samples), seed=seed)
    heard: Samples = np.clip(louder, -32768, 32767).astype(np.int16)
    return heard


def quietest(samples: Samples) -> Samples:
    """The quietest 100 ms, shape (1600,)."""
    starts = range(0, len(samples) - BACKGROUND, BACKGROUND // 4)
    loudness = np.square(samples.astype(np.float64))
    first = min(starts, key=lambda start: float(loudness[start : start + BACKGROUND].sum()))
    return samples[first : first + BACKGROUND]


class Room:
    """Sounds like a given 100 ms for as long as is wanted: its spectrum and level, other phases."""

    def __init__(self, sample: Samples) -> None:
        self.rms = max(1.0, float(np.sqrt(np.mean(np.square(sample.astype(np.float64))))))
        self._magnitude = np.abs(np.fft.rfft(sample * np.hanning(BACKGROUND)))

    def noise(self, count: int, *, seed: int) -> Samples:
        """``count`` samples of it."""
        random = np.random.default_rng(seed)
        made = np.zeros(count + 2 * BACKGROUND)
        for start in range(0, count + BACKGROUND, BACKGROUND // 2):
            phases = np.exp(2j * np.pi * random.random(len(self._magnitude)))
            piece = np.fft.irfft(self._magnitude * phases, BACKGROUND) * np.hanning(BACKGROUND)
            made[start : start + BACKGROUND] += piece
        made = made[BACKGROUND : BACKGROUND + count]
        noise: Samples = np.rint(made * (self.rms / np.sqrt(np.mean(np.square(made))))).astype(np.int16)
        return noise


QUIET_ROOM = Room(np.random.default_rng(0).normal(0, 16, BACKGROUND).astype(np.int16))
"""Under a synthetic voice: 16 of 32768, which is -66 dB."""


def voiced(samples: Samples, room: Room) -> npt.NDArray[np.bool_]:
    """Which whole blocks of 10 ms hold a voice."""
    blocks = samples[: len(samples) // BLOCK * BLOCK].reshape(-1, BLOCK).astype(np.float64)
    level = np.sqrt(np.mean(np.square(blocks), axis=1))
    least = max(float(level.max()) * 10 ** (-40 / 20), room.rms * 10 ** (ABOVE_BACKGROUND_DB / 20))
    loud: npt.NDArray[np.bool_] = level > least
    return loud


def last_voice(samples: Samples, room: Room) -> int:
    """Index just past the last 10 ms that hold a voice."""
    return int(np.flatnonzero(voiced(samples, room))[-1] + 1) * BLOCK


def joined(before: Samples, pause: Samples, after: Samples) -> Samples:
    """One after the other; at the cuts voice and background fade into one another over 10 ms."""
    before, pause, after = before.copy(), pause.copy(), after.copy()
    down = np.linspace(1, 0, FADE)
    for piece in (before, pause):
        piece[-FADE:] = (piece[-FADE:] * down).astype(np.int16)
    for piece in (pause, after):
        piece[:FADE] = (piece[:FADE] * down[::-1]).astype(np.int16)
    return np.concatenate([before, pause, after])


def quietest_near(samples: Samples, at: int) -> int:
    """The middle of the quietest 20 ms within ``SEARCH`` of ``at``."""
    half = HEARING_RATE_HZ // 100
    first, last = max(half, at - SEARCH), min(len(samples) - half, at + SEARCH)
    as_float = samples.astype(np.float64)
    return min(
        range(first, last, half // 4),
        key=lambda middle: float(np.square(as_float[middle - half : middle + half]).sum()),
    )


class _Speech:
    """What is said of a recording, in its room."""

    def __init__(self, sentence: Sentence, recording: Samples, room: Room) -> None:
        self._room = room
        self._first = round(sentence.begins_s * HEARING_RATE_HZ)
        spoken = recording[self._first : min(len(recording), round(sentence.ends_s * HEARING_RATE_HZ))]
        # What the recording has after the last voice is left out: the background that follows is made.
        self._spoken = spoken[: last_voice(spoken, room)]
        self._name = f"{sentence.name}@{sentence.begins_s:g}" if sentence.begins_s else sentence.name

    def paused(self, language: Language, voice: Voice, pause_s: float, cut_s: float) -> Utterance:
        lead, trail = (round(s * HEARING_RATE_HZ) for s in (LEAD_S, TRAIL_S))
        spoken, pause = self._spoken, (lead, lead)
        if pause_s:
            spoken, (begins, ends) = self._with_pause(pause_s, cut_s)
            pause = (lead + begins, lead + ends)
        return Utterance(
            name=f"{self._name}+{pause_s:g}" if pause_s else self._name,
            language=language,
            voice=voice,
            pause_s=pause_s,
            samples=np.concatenate([self._room.noise(lead, seed=1), spoken, self._room.noise(trail, seed=2)]),
            begins=lead + int(np.flatnonzero(voiced(spoken, self._room))[0]) * BLOCK,
            ends=lead + len(spoken),
            pause=pause,
        )

    def _with_pause(self, pause_s: float, cut_s: float) -> tuple[Samples, tuple[int, int]]:
        spoken = self._spoken
        at = quietest_near(spoken, round(cut_s * HEARING_RATE_HZ) - self._first)
        speech = np.flatnonzero(voiced(spoken, self._room)) * BLOCK
        before, after = int(speech[speech < at][-1]) + BLOCK, int(speech[speech >= at][0])
        # A natural gap counts towards the pause; 50 ms of it are kept on each side, as the voice's own ends.
        before_kept, after_kept = min(at, before + KEPT), max(at, after - KEPT)
        kept = (before_kept - before) + (after - after_kept)
        length = round(pause_s * HEARING_RATE_HZ) - kept
        pause = self._room.noise(length, seed=3)
        return joined(spoken[:before_kept], pause, spoken[after_kept:]), (before, before + length + kept)


def _paused(
    sentence: Sentence, recording: Samples, language: Language, voice: Voice, room: Room
) -> Iterator[Utterance]:
    speech = _Speech(sentence, recording, room)
    yield speech.paused(language, voice, 0.0, 0.0)
    for pause_s, cut_s in zip(PAUSES_S, sentence.cuts_s, strict=True):
        yield speech.paused(language, voice, pause_s, cut_s)
