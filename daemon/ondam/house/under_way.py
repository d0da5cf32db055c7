"""One turn that is under way: what was said in it, whom it leased, and the drafts of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ondam.dialog.actions import Outcome
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.pieces import Pieces
from ondam.pipeline.ports import Lease
from ondam.pipeline.recognize import mark_last_voice
from ondam.pipeline.runner import DraftRunner
from ondam.types import DraftId, Samples


@dataclass(eq=False)
class UnderWay:
    """From its first sample, or the typed question, to its end."""

    begun: Turn
    """What is known of it whichever draft becomes the answer."""
    lease: Lease
    """With whom it ends."""
    said: Utterance = field(default_factory=lambda: Utterance(()))
    """As far as it is over."""
    pieces: Pieces | None = None
    """What was handed on of a long utterance before its end."""
    handed_on: list[Samples] = field(default_factory=list)
    """The same as sound, only where that is to be kept."""
    drafts: dict[DraftId, DraftRunner] = field(default_factory=dict)
    early: set[DraftId] = field(default_factory=set)
    """Those that were begun before the endpoint."""

    def add(self, runner: DraftRunner, *, early: bool) -> None:
        """Another draft."""
        self.drafts[runner.draft] = runner
        if early:
            self.early.add(runner.draft)
            self.begun.drafts_made += 1

    def cancel(self, draft: DraftId, *, going_on: bool) -> None:
        """It is not the answer. ``going_on``: the turn is; if this was its answer, the endpoint was false."""
        runner = self.drafts[draft]
        runner.cancel()
        taken_back = runner.committed and going_on
        self.begun.taken_back += taken_back
        if draft in self.early and (taken_back or not runner.committed):
            self.begun.drafts_dropped += 1
            self.begun.draft_tokens += runner.turn.streamed

    def end(self, draft: DraftId | None, outcome: Outcome, *, keep_audio: bool) -> Turn:
        """What is to be remembered of it, with ``draft`` as its answer. Pieces are wanted no more."""
        if self.pieces is not None:
            self.pieces.cancel()
        begun = self.begun
        turn = self.drafts[draft].turn if draft in self.drafts else begun
        if turn is not begun:
            turn.marks.at_ns |= begun.marks.at_ns
            turn.drafts_made, turn.drafts_dropped = begun.drafts_made, begun.drafts_dropped
            turn.draft_tokens, turn.taken_back = begun.draft_tokens, begun.taken_back
            turn.warmth, turn.population = begun.warmth, begun.population
        turn.llm_calls = sum(runner.turn.llm_calls for runner in self.drafts.values())
        mark_last_voice(turn, self.said)
        if keep_audio and outcome not in {"not_addressed", "no_speech"}:
            turn.sound = np.concatenate([*self.handed_on, self.said.samples])
        turn.utterance_s += self.pieces.seconds if self.pieces is not None else 0.0
        turn.outcome = outcome
        if outcome == "not_addressed":
            turn.transcript = None  # it is nobody's business
        turn.engines, turn.crew = self.lease.engines.identities(), self.lease.crew
        return turn

    @property
    def leaving(self) -> Sequence[DraftRunner | Pieces]:
        """Of its work what still runs, once it has ended: it takes time to let go of an engine."""
        work: list[DraftRunner | Pieces] = [*self.drafts.values()]
        if self.pieces is not None:
            work.append(self.pieces)
        return [one for one in work if one.busy]
