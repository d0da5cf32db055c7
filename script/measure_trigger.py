#!/usr/bin/env python3
"""What could begin a draft sooner: how long after the voice each trigger fires, and how often inside speech.

    ONDAM_HOME=… .venv/bin/python script/measure_trigger.py [--room DB] [--json]

Utterances: the shipped clips in a quiet room, and recordings of people (fetched from the package registry)
cut in the middle of their own long pauses, so that what follows the voice is the room it was spoken in. The
end of the voice is that of the journal: the last 10 ms above -40 dB of the loudest, or above the room by 6 dB
where the room is louder than that.

Triggers: Silero's n-th frame below a probability; the level of 10 ms blocks so many dB below the loudest so
far, for so long; and both at once, with what Silero said of its last whole frame.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent.parent))  # the recordings are fetched by what the tests use

from tests.fakes.human_clips import human_clips

from ondam.app import VAD_MODEL
from ondam.audio.resample import resampled
from ondam.control.sound import decode
from ondam.journal.marks import VOICED_BLOCK, VOICED_FLOOR_DB
from ondam.measure.clips import clips
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.silero import FRAME, Silero
from ondam.places import places
from ondam.types import HEARING_RATE_HZ, Samples

Floats = npt.NDArray[np.float64]

ONSET, RELEASE = 0.5, 0.35
LONG_PAUSE = 9
"""Frames: 288 ms."""
SHORTEST_S = 0.75
PRE_ROLL_S = 0.4
ROOM_BLOCKS = 15
ROOM_ABOVE_DB = 6.0
EARLY_MS = 50.0
"""A trigger so shortly before the end is taken for the end's own: the voice has all but faded."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One utterance, and what is known of it."""

    kind: str
    probabilities: Floats
    """Of each whole frame."""
    levels: Floats
    """dB of full scale, of each whole 10 ms."""
    last_voice: int
    """Samples from its beginning."""
    onset: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """Fires when the voice has been gone for so long by each measure that it has."""

    name: str
    below: float = 1.1
    """Silero's probability of the last whole frame."""
    frames: int = 1
    drop_db: float = 0.0
    for_ms: int = 10

    def fires(self, heard: Heard) -> Iterator[int]:
        """Samples at which it fires, once for each time the voice is gone."""
        quiet = heard.levels < np.maximum.accumulate(heard.levels) - self.drop_db
        blocks, fired = 0, False
        for block in range((heard.onset + self.frames * FRAME) // VOICED_BLOCK, len(quiet)):
            end = (block + 1) * VOICED_BLOCK
            known = heard.probabilities[max(0, end // FRAME - self.frames) : end // FRAME]
            gone = bool(len(known) == self.frames and (known < self.below).all())
            blocks = blocks + 1 if quiet[block] or not self.drop_db else 0
            if blocks * 10 < self.for_ms or not gone:
                fired = fired and blocks > 0 and (self.drop_db > 0 or gone)
            elif not fired:
                fired = True
                # Without a level it is Silero's frame that fires, not the block after it.
                yield end if self.drop_db else end // FRAME * FRAME


TRIGGERS = (
    Trigger("silero < 0.35, 2 frames (drafts.after_ms = 64)", below=RELEASE, frames=2),
    Trigger("silero < 0.35, 1 frame (drafts.after_ms = 32)", below=RELEASE),
    *(Trigger(f"silero < {p}, 1 frame", below=p) for p in (0.5, 0.7, 0.85)),
    *(Trigger(f"-{d} dB for {ms} ms", drop_db=d, for_ms=ms) for d in (25, 30, 35) for ms in (30, 60, 80)),
    *(
        Trigger(f"-{d} dB for 30 ms, silero < {p}", below=p, drop_db=d, for_ms=30)
        for d in (25, 30)
        for p in (0.7, 0.85, 0.95)
    ),
)


@dataclass(slots=True)
class Figures:
    """Of one trigger over the utterances of one kind."""

    lags_ms: list[float] = field(default_factory=list)
    false: int = 0
    missed: int = 0
    utterances: int = 0

    def count(self, heard: Heard, trigger: Trigger) -> None:
        rate = HEARING_RATE_HZ / 1000
        lags = [(fired - heard.last_voice) / rate for fired in trigger.fires(heard)]
        after = [lag for lag in lags if lag > -EARLY_MS]
        self.utterances += 1
        self.false += len(lags) - len(after)
        self.missed += not after
        self.lags_ms += after[:1]

    def as_json(self) -> dict[str, Any]:
        p50, p90 = (round(float(v)) for v in np.percentile(self.lags_ms or [0.0], (50, 90)))
        each = round(self.false / self.utterances, 2)
        return {"p50_ms": p50, "p90_ms": p90, "false_per_utterance": each, "missed": self.missed}


def probabilities(voice: Silero, samples: Samples) -> Floats:
    voice.reset()
    whole = range(0, len(samples) - FRAME + 1, FRAME)
    return np.array([voice(samples[at : at + FRAME]) for at in whole])


def levels(samples: Samples) -> Floats:
    whole = len(samples) // VOICED_BLOCK
    blocks = samples[: whole * VOICED_BLOCK].reshape(whole, VOICED_BLOCK).astype(np.float64)
    loudness: Floats = 20 * np.log10(np.maximum(np.sqrt(np.square(blocks).mean(axis=1)), 1e-3) / 32768)
    return loudness


def utterances(voice: Silero, room_db: float) -> Iterator[tuple[str, Samples]]:
    noise = np.random.default_rng(0)
    for clip in (*clips("en"), *clips("ko")):
        spoken = resampled(decode(clip.wav, 10**7), HEARING_RATE_HZ).samples
        heard = np.concatenate([spoken, np.zeros(HEARING_RATE_HZ // 2, np.int16)]).astype(np.float64)
        heard += noise.normal(0.0, 32768 * 10 ** (room_db / 20), len(heard))
        yield "shipped", np.clip(heard, -32768, 32767).astype(np.int16)
    for recording in human_clips():
        yield from (("people", piece) for piece in _at_pauses(voice, recording.audio.samples))


def _at_pauses(voice: Silero, samples: Samples) -> Iterator[Samples]:
    silent = probabilities(voice, samples) < RELEASE
    start = at = 0
    while at < len(silent):
        end = at
        while end < len(silent) and silent[end] == silent[at]:
            end += 1
        if silent[at] and end - at >= LONG_PAUSE and at * FRAME - start > SHORTEST_S * HEARING_RATE_HZ:
            yield samples[max(0, start - round(PRE_ROLL_S * HEARING_RATE_HZ)) : (end - 1) * FRAME]
            start = end * FRAME
        at = end


def heard(voice: Silero, kind: str, samples: Samples) -> Heard | None:
    """None where no end of the voice is to be seen."""
    loudness, speech = levels(samples), probabilities(voice, samples)
    room = float(np.median(loudness[-ROOM_BLOCKS:]))
    voiced = np.flatnonzero(loudness > max(loudness.max() + VOICED_FLOOR_DB, room + ROOM_ABOVE_DB))
    begun = np.flatnonzero(speech >= ONSET)
    if not len(voiced) or not len(begun) or voiced[-1] > len(loudness) - ROOM_BLOCKS:
        return None
    return Heard(kind, speech, loudness, int(voiced[-1] + 1) * VOICED_BLOCK, int(begun[0]) * FRAME)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--room", type=float, default=-68.0, help="noise put under the shipped clips, dB")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    voice = Silero(Store(places().models).path(Catalog.union({}).card(VAD_MODEL)))
    figures: dict[str, dict[str, Figures]] = {}
    for kind, samples in list(utterances(voice, given.room)):
        if (one := heard(voice, kind, samples)) is not None:
            for trigger in TRIGGERS:
                figures.setdefault(kind, {}).setdefault(trigger.name, Figures()).count(one, trigger)
    if given.json:
        print(json.dumps({k: {n: f.as_json() for n, f in v.items()} for k, v in figures.items()}, indent=2))
        return
    for kind, of_trigger in figures.items():
        count = next(iter(of_trigger.values())).utterances
        print(f"{kind}: {count} utterances\n{'':46}lag p50   p90   false each   missed")
        for name, told in of_trigger.items():
            row = told.as_json()
            lag = f"{row['p50_ms']:7} {row['p90_ms']:5}"
            print(f"{name:46}{lag} {row['false_per_utterance']:12} {row['missed']:8}")


if __name__ == "__main__":
    main()
