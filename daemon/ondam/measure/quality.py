"""How well it is heard and how clearly it is said, beside how quickly: the engines alone, one at a time.

Recognition: each recording once without and once with the names to listen for, in turn. Round trip: each
sentence spoken by the voice and written down by the recognizer, so it holds the errors of both.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ondam.audio.resample import resampled
from ondam.errors import EngineError, OndamError
from ondam.measure.distribution import distribution
from ondam.measure.transcripts import Recording
from ondam.measure.word_errors import Score, score, total
from ondam.messages import reader_language
from ondam.pipeline.ports import Recognizer, SpeechEnd, SpeechStart, Synthesizer
from ondam.speech import ClauseStream
from ondam.types import HEARING_RATE_HZ, Audio, Language, Nanoseconds, Samples

PAUSE_S = 0.3
"""Silence around what the voice says: recognizers mishear speech that begins with the first sample."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One recognition; ``score`` None when the engine failed, ``error`` then says why."""

    text: str | None
    ms: float | None
    """As its client sees it."""
    score: Score | None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Beside the recording or the sentence it belongs to."""
        told: dict[str, Any] = {"heard": self.text, "ms": _round(self.ms)}
        if self.score is not None:
            told |= {key: self.score.as_json()[key] for key in ("wer", "cer")}
        return told | ({"error": self.error} if self.error is not None else {})


@dataclass(frozen=True, slots=True)
class Spoken:
    """One sentence there and back."""

    sentence: str
    heard: Heard
    first_audio_ms: float | None
    seconds: float
    """Of sound."""
    ms: float | None
    """Until the last of it."""


@dataclass(slots=True)
class Quality:
    """What was measured, in the order in which it happened."""

    names: Sequence[str]
    clips: list[tuple[Recording, Heard, Heard | None]] = field(default_factory=list)
    """Without names, and with them where there are any."""
    spoken: list[Spoken] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """What ``ondam bench --quality --json`` prints but the conditions."""
        said = [one.heard for one in self.spoken]
        return {
            "names": list(self.names),
            "stt": {
                "without_names": _figures([plain for _, plain, _ in self.clips]),
                "with_names": _figures([named for _, _, named in self.clips if named is not None])
                if self.names
                else None,
            },
            "round_trip": _figures(said)
            | {
                "first_audio_ms": distribution(one.first_audio_ms for one in self.spoken),
                "rtf": _rtf(self.spoken),
            },
            "clips": [
                {
                    "clip": clip.name,
                    "words": clip.words,
                    "seconds": round(clip.seconds, 3),
                    "without_names": plain.as_json(),
                    "with_names": named.as_json() if named is not None else None,
                }
                for clip, plain, named in self.clips
            ],
            "sentences": [
                {
                    "sentence": one.sentence,
                    "seconds": round(one.seconds, 3),
                    "first_audio_ms": _round(one.first_audio_ms),
                    "round_trip": one.heard.as_json(),
                }
                for one in self.spoken
            ],
        }


async def measure(
    recognizer: Recognizer,
    synthesizer: Synthesizer,
    clips: Sequence[Recording],
    sentences: Sequence[str],
    names: Sequence[str],
    *,
    language: Language,
    clock: Callable[[], Nanoseconds] = time.monotonic_ns,
    tick: Callable[[], None] = lambda: None,
) -> Quality:
    """All of them once, one after another. An engine that fails is told at its clip; the run goes on.

    Raises AudioError when a recording is gone meanwhile.
    """
    ears = _Ears(recognizer, language, clock)
    made = Quality(names)
    for number, clip in enumerate(clips):
        # In turn, so that a machine that is busier later is so for both.
        sides: list[Sequence[str]] = [(), names] if names else [()]
        audio = await asyncio.to_thread(clip.audio)
        heard = {bool(side): await ears.hear(audio, clip.words, side) for side in sides[:: _way(number)]}
        made.clips.append((clip, heard[False], heard.get(True)))
        tick()
    for sentence in sentences:
        made.spoken.append(await _there_and_back(sentence, ears, synthesizer, language, clock))
        tick()
    return made


def _way(number: int) -> int:
    return 1 if number % 2 == 0 else -1


@dataclass(frozen=True, slots=True)
class _Ears:
    recognizer: Recognizer
    language: Language
    clock: Callable[[], Nanoseconds]

    async def hear(self, audio: Audio, words: str, names: Sequence[str]) -> Heard:
        began = self.clock()
        try:
            transcript = await self.recognizer.transcribe(audio, self.language, names)
        except EngineError as error:
            return _failed(error)
        took = (self.clock() - began) / 1e6
        return Heard(transcript.text, took, score(words, transcript.text, self.language))


async def _there_and_back(
    sentence: str,
    ears: _Ears,
    synthesizer: Synthesizer,
    language: Language,
    clock: Callable[[], Nanoseconds],
) -> Spoken:
    began = clock()
    first: float | None = None
    rate_hz, pieces = HEARING_RATE_HZ, list[Samples]()
    clauses = ClauseStream(language)
    try:
        for clause in (*clauses.feed(sentence), *clauses.finish()):
            async with aclosing(synthesizer.synthesize(clause.spoken, language)) as stream:
                async for piece in stream:
                    if isinstance(piece, SpeechStart):
                        rate_hz = piece.rate_hz
                    elif not isinstance(piece, SpeechEnd) and len(piece):
                        first = first if first is not None else (clock() - began) / 1e6
                        pieces.append(piece)
        if not pieces:
            raise EngineError("quality_voice_silent")
    except EngineError as error:
        return Spoken(sentence, _failed(error), None, 0.0, None)
    took = (clock() - began) / 1e6
    pause = np.zeros(int(PAUSE_S * rate_hz), np.int16)
    sound = Audio(np.concatenate([pause, *pieces, pause]), rate_hz)
    heard = await ears.hear(resampled(sound, HEARING_RATE_HZ), sentence, ())
    return Spoken(sentence, heard, first, sum(map(len, pieces)) / rate_hz, took)


def _figures(heard: Sequence[Heard]) -> dict[str, Any]:
    """Errors of all together, beside what they took: speed bought with errors is not speed."""
    summed = total(one.score for one in heard if one.score is not None)
    rates: dict[str, Any] = dict.fromkeys(("wer", "cer", "cer_as_written", "words", "characters"))
    return {
        **(summed.as_json() if summed else rates),
        "ms": distribution(one.ms for one in heard),
        "failed": sum(1 for one in heard if one.score is None),
    }


def _rtf(spoken: Sequence[Spoken]) -> float | None:
    """Time per second of sound, over all sentences."""
    made = [(one.ms, one.seconds) for one in spoken if one.ms is not None and one.seconds]
    seconds = sum(s for _, s in made)
    return round(sum(ms for ms, _ in made) / 1000 / seconds, 4) if seconds else None


def _failed(error: OndamError) -> Heard:
    return Heard(None, None, None, error.message(reader_language()).text)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
