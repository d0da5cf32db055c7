#!/usr/bin/env python3
"""Where endpoints fall: a window of silence against smart-turn, on utterances with pauses in the middle.

    .venv/bin/python script/measure_endpoints.py
    .venv/bin/python script/measure_endpoints.py --sweep --json endpoints.json

Each utterance goes through the real detector, Silero, smart-turn and dialog machine, on a clock made of
arithmetic: blocks of 10 ms as a microphone delivers them, smart-turn's verdict --verdict-ms after it was
asked for; nothing waits. The same run gives the same table. Needs the models ("ondam models add") and for
Korean the espeak engine ("ondam engines build espeak"); English recordings are fetched.

The answer is never made; when its first sound would be heard is worked out from --engines-ms, what the
engines take from the beginning of the draft on. An endpoint inside an utterance is taken back when the user
goes on, so that every pause of every utterance counts, also after an answer would have been heard.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fakes.paused_speech import PAUSES_S, Utterance, english, korean

from ondam.config import Config, load
from ondam.dialog.actions import (
    Action,
    Cancel,
    CloseUtterance,
    JudgePause,
    OpenUtterance,
    Recognize,
    ReopenUtterance,
)
from ondam.dialog.endpointing import Drafting, Endpointing, Silence, SmartTurn
from ondam.dialog.events import Event, Judged, Ready
from ondam.dialog.history import History
from ondam.dialog.machine import Hearing, State, step
from ondam.errors import EngineError, ModelError
from ondam.measure.endpoints import Endpoint, Score, Trial, at_equal_wait, score
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline import smart_turn
from ondam.pipeline.detect import Detector
from ondam.pipeline.silero import FRAME, Silero
from ondam.places import Places, places
from ondam.supervisor.environment import installed
from ondam.supervisor.manifest import engine_roots, find_engines
from ondam.types import HEARING_RATE_HZ, Block, DraftId, Samples

THRESHOLDS = (0.5, 0.7, 0.9)
COMPLETE_MS = (192, 320, 416, 512)
INCOMPLETE_MS = (800, 1000, 1200, 1400)

BLOCK, BLOCK_MS = HEARING_RATE_HZ // 100, 10

WINDOWS_MS = (400, 600, 800, 1000)
CURVE_MS = (128, 192, 256, 320, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600)
"""Windows that the silence curve is drawn from."""

UNTOLD = {f"silence {window}" for window in CURVE_MS} - {f"silence {window}" for window in WINDOWS_MS}
"""Points of the curve that have no row of their own."""

GROUPS: dict[str, Callable[[Utterance], bool]] = {
    "English, people": lambda utterance: utterance.voice == "human",
    "English, people and Piper": lambda utterance: utterance.language == "en",
    "Korean, espeak (not judged)": lambda utterance: utterance.language == "ko",
}


class Replayed:
    """Silero's probabilities of a sound, worked out once: they hang on nothing but the sound."""

    frame = FRAME

    def __init__(self, probabilities: Sequence[float]) -> None:
        self._left = iter(probabilities)

    def __call__(self, frame: Samples) -> float:
        return next(self._left)

    def reset(self) -> None:
        raise AssertionError("the microphone is never shut in this study")


class Judge:
    """Smart-turn; the same sound is judged once."""

    def __init__(self, model: Path) -> None:
        self._model = smart_turn.SmartTurn(model)
        self._known: dict[bytes, float] = {}

    def __call__(self, samples: Samples) -> float:
        heard = samples[-smart_turn.WINDOW :].tobytes()
        if heard not in self._known:
            self._known[heard] = self._model.probability(samples)
        return self._known[heard]


@dataclass(frozen=True)
class Conditions:
    """What is the same for every way of endpointing."""

    config: Config
    verdict_ms: float
    engines_ms: float
    playback_ms: float

    @property
    def drafting(self) -> Drafting:
        drafts = self.config.drafts
        return Drafting(drafts.after_ms, drafts.most_per_turn, drafts.take_back_ms, drafts.at_fall)


class Conversation:
    """One utterance, heard by the detector and decided on by the dialog machine."""

    def __init__(
        self, conditions: Conditions, endpointing: Endpointing, voice: Replayed, judge: Judge
    ) -> None:
        self._conditions = conditions
        self._judge = judge
        self._now_ms = 0.0
        self._detector = Detector(voice, conditions.config.detect, self._now_ns)
        self._state = State(endpointing, History(0), conditions.drafting)
        self._coming: list[tuple[float, int, Judged | Ready]] = []
        """Verdicts and first sounds, by when they come."""
        self._order = itertools.count()
        self._begun_ms: dict[DraftId, float] = {}
        self.endpoints: list[Endpoint] = []

    def _now_ns(self) -> int:
        return round(self._now_ms * 1e6)

    def hear(self, samples: Samples) -> None:
        for first in range(0, len(samples) // BLOCK * BLOCK, BLOCK):
            block = Block(samples[first : first + BLOCK], first, self._now_ns())
            delivered_ms = self._now_ms + BLOCK_MS
            while self._coming and self._coming[0][0] <= delivered_ms:
                self._now_ms, _, come = heapq.heappop(self._coming)
                self._handle(replace(come, at_ns=self._now_ns()))
            self._now_ms = delivered_ms
            for event in self._detector.hear(block):
                self._handle(event)

    def _handle(self, event: Event) -> None:
        self._state, actions = step(self._state, event)
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case OpenUtterance():
                self._detector.open(by_hand=action.by_hand)
                self._begun_ms.clear()
            case ReopenUtterance():
                self.endpoints[-1] = replace(self.endpoints[-1], resumed_ms=self._now_ms)
                self._detector.reopen()
            case CloseUtterance():
                self._detector.close()
                self.endpoints.append(Endpoint(self._now_ms, self._audible_ms()))
            case Recognize():
                self._begun_ms[action.draft] = self._now_ms
                self._comes(self._conditions.engines_ms, Ready(0, action.draft))
            case Cancel():
                self._begun_ms.pop(action.draft, None)
            case JudgePause():
                self._ask(action)
            case _:
                pass  # Nothing is answered here.

    def _audible_ms(self) -> float:
        begun_ms = max(self._begun_ms.values(), default=self._now_ms)
        ready_ms = begun_ms + self._conditions.engines_ms
        return max(ready_ms, self._now_ms) + self._conditions.playback_ms

    def _ask(self, action: JudgePause) -> None:
        phase = self._state.phase
        assert isinstance(phase, Hearing)
        least_ms = self._conditions.config.endpoint.judge_with_ms
        said = self._detector.so_far().ending_in(least_ms, phase.silence_ms)
        self._comes(self._conditions.verdict_ms, Judged(0, action.turn, action.pause, self._judge(said)))

    def _comes(self, after_ms: float, event: Judged | Ready) -> None:
        heapq.heappush(self._coming, (self._now_ms + after_ms, next(self._order), event))


class Study:
    """The utterances, and what Silero hears in them."""

    def __init__(self, utterances: Sequence[Utterance], vad: Path, judge: Judge, conditions: Conditions):
        self.utterances = utterances
        self.conditions = conditions
        self._judge = judge
        self._probabilities = [_probabilities(Silero(vad), utterance.samples) for utterance in utterances]

    def trials(self, endpointing: Endpointing) -> list[Trial]:
        """What became of each utterance."""
        return [
            self._trial(endpointing, utterance, probabilities)
            for utterance, probabilities in zip(self.utterances, self._probabilities, strict=True)
        ]

    def _trial(self, endpointing: Endpointing, utterance: Utterance, probabilities: list[float]) -> Trial:
        heard = Conversation(self.conditions, endpointing, Replayed(probabilities), self._judge)
        heard.hear(utterance.samples)
        return Trial(1000 * utterance.ends / HEARING_RATE_HZ, tuple(heard.endpoints))


def _probabilities(silero: Silero, samples: Samples) -> list[float]:
    return [silero(frame) for frame in samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)]


@dataclass(frozen=True)
class Row:
    """One way of endpointing on one group of utterances."""

    way: str
    group: str
    score: Score
    cut_by_pause: Mapping[float, tuple[int, int]]
    """Length of the pause that was put in (0: none) to utterances cut, and utterances."""


def rows(study: Study, way: str, endpointing: Endpointing) -> Iterator[Row]:
    """The groups' rows."""
    trials = study.trials(endpointing)
    for group, belongs in GROUPS.items():
        mine = [(u, t) for u, t in zip(study.utterances, trials, strict=True) if belongs(u)]
        if not mine:
            continue
        cut: dict[float, list[bool]] = defaultdict(list)
        for utterance, trial in mine:
            cut[utterance.pause_s].append(bool(trial.false))
        yield Row(
            way,
            group,
            score([t for _, t in mine], take_back_ms=study.conditions.drafting.take_back_ms),
            {pause: (sum(cut[pause]), len(cut[pause])) for pause in (0.0, *PAUSES_S)},
        )


def ways(config: Config, *, sweep: bool) -> Iterator[tuple[str, Endpointing]]:
    """What is compared. Smart-turn is named by its probabilities and windows."""
    for window in sorted({*WINDOWS_MS, *CURVE_MS}):
        yield f"silence {window}", Silence(window)
    endpoint = config.endpoint
    shipped = (endpoint.sure_ms, endpoint.complete_ms, endpoint.incomplete_ms)
    values = {(endpoint.threshold, endpoint.sure, *shipped)}
    if sweep:
        fixed = itertools.product(THRESHOLDS, COMPLETE_MS, INCOMPLETE_MS)
        values |= {(threshold, threshold, soon, soon, late) for threshold, soon, late in fixed}
    for threshold, sure, sure_ms, complete_ms, incomplete_ms in sorted(values):
        judged = SmartTurn(
            threshold, sure, sure_ms, complete_ms, incomplete_ms, unsure_ms=endpoint.silence_ms
        )
        soon = f"{sure:g} and ready {sure_ms}, " if sure_ms < complete_ms else ""
        yield f"smart-turn {soon}{threshold:g} {complete_ms}, else {incomplete_ms}", judged


def table(found: Sequence[Row]) -> Iterator[str]:
    """Markdown. Waits are mean / p50 / p90."""
    curve = [row.score for row in found if row.way.startswith("silence")]
    pauses = " | ".join(f"{pause:g} s" if pause else "none" for pause in (0.0, *PAUSES_S))
    yield (
        "| | false endpoints | silence at that wait | wait | answers heard | silence at that wait "
        f"| first sound | {pauses} |"
    )
    yield f"|---|---:|---:|---:|---:|---:|---:|{'---:|' * (1 + len(PAUSES_S))}"
    for row in found:
        if row.way in UNTOLD:
            continue
        s = row.score
        cells = [row.way]
        for count, wait, points in (
            (s.false, s.wait, [(other.wait.mean, other.false) for other in curve]),
            (s.heard, s.sound, [(other.sound.mean, other.heard) for other in curve]),
        ):
            assert wait.mean is not None
            at = at_equal_wait([(mean, n) for mean, n in points if mean is not None], wait.mean)
            silent = row.way.startswith("silence")
            equal = "" if silent else "outside" if at is None else f"{at:.1f}"
            cells += [str(count), equal, f"{wait.mean:.0f} / {wait.p50:.0f} / {wait.p90:.0f}"]
        cells += [f"{n} of {of}" for n, of in row.cut_by_pause.values()]
        yield f"| {' | '.join(cells)} |"


def gathered(here: Places) -> list[Utterance]:
    """The set; without Korean where the espeak engine is not built."""
    utterances = list(english())
    try:
        espeak = installed(find_engines(engine_roots(here.user_engines))["espeak"], here)
    except EngineError as error:
        print(f"no Korean: {error}", file=sys.stderr)
        return utterances
    return [*utterances, *korean(espeak.python)]


def as_json(row: Row) -> dict[str, Any]:
    cut = {f"{pause:g}": list(counts) for pause, counts in row.cut_by_pause.items()}
    return {"way": row.way, "group": row.group, **asdict(row.score), "cut_by_pause": cut}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sweep", action="store_true", help="other values for smart-turn, too")
    parser.add_argument(
        "--verdict-ms", type=float, default=55.0, help="from asking smart-turn to its verdict"
    )
    parser.add_argument("--engines-ms", type=float, default=478.0, help="see docs/numbers.md")
    parser.add_argument("--playback-ms", type=float, default=11.0)
    parser.add_argument("--json", type=Path, help="write everything there")
    args = parser.parse_args()
    here = places()
    config = load(None)
    store, catalog = Store(here.models), Catalog.of(here)
    try:
        vad, judge = store.path(catalog.card("silero-vad")), store.path(catalog.card("smart-turn"))
    except ModelError as error:
        sys.exit(str(error))
    conditions = Conditions(config, args.verdict_ms, args.engines_ms, args.playback_ms)
    study = Study(gathered(here), vad, Judge(judge), conditions)
    found = [
        row for way, endpointing in ways(config, sweep=args.sweep) for row in rows(study, way, endpointing)
    ]
    for group in GROUPS:
        mine = [row for row in found if row.group == group]
        if mine:
            print(f"**{group}**, {mine[0].score.utterances} utterances\n", *table(mine), "", sep="\n")
    if args.json:
        values = {
            "endpoint": config.endpoint.model_dump(),
            "detect": config.detect.model_dump(),
            "drafts": config.drafts.model_dump(),
            "verdict_ms": args.verdict_ms,
            "engines_ms": args.engines_ms,
            "playback_ms": args.playback_ms,
        }
        written = {"conditions": values, "rows": [as_json(row) for row in found]}
        args.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
