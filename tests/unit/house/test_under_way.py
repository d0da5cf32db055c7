"""One turn: which of its drafts counts as what, and what is remembered of it at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest
from tests.fakes.engines import ScriptedEngines

from ondam.dialog.actions import Outcome
from ondam.house.under_way import UnderWay
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.ports import Lease
from ondam.pipeline.runner import DraftRunner
from ondam.types import Block, DraftId, TurnId


def record() -> Turn:
    return Turn(TurnId(1), "s", datetime.now(UTC))


@dataclass
class Runner:
    """A draft's work, without any."""

    draft: DraftId
    committed: bool = False
    busy: bool = False
    turn: Turn = field(default_factory=record)
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Long:
    """Pieces of a long utterance."""

    seconds: float
    busy: bool = True
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


def under_way() -> UnderWay:
    return UnderWay(record(), Lease(ScriptedEngines(), crew=4))


def added(turn: UnderWay, number: int, *, early: bool = True, **otherwise: Any) -> Runner:
    runner = Runner(DraftId(number), **otherwise)
    turn.add(cast(DraftRunner, runner), early=early)
    return runner


def said(level: int) -> Utterance:
    """10 ms."""
    return Utterance((Block(np.full(160, level, np.int16), 0, 10_000_000),))


def test_a_draft_that_was_never_the_answer_is_dropped_with_its_tokens() -> None:
    turn = under_way()
    added(turn, 1).turn.streamed = 7
    dropped = added(turn, 2)
    dropped.turn.streamed = 5
    turn.cancel(DraftId(2), going_on=True)
    assert dropped.cancelled
    begun = turn.begun
    assert (begun.drafts_made, begun.drafts_dropped, begun.draft_tokens, begun.taken_back) == (2, 1, 5, 0)


def test_an_answer_that_is_taken_back_was_a_false_endpoint_and_one_that_is_stopped_was_not() -> None:
    for going_on, expected in ((True, (1, 1)), (False, (0, 0))):
        turn = under_way()
        added(turn, 1, committed=True)
        turn.cancel(DraftId(1), going_on=going_on)
        assert (turn.begun.taken_back, turn.begun.drafts_dropped) == expected


def test_what_was_begun_after_the_endpoint_is_no_draft_that_was_made_for_nothing() -> None:
    turn = under_way()
    added(turn, 1, early=False)
    turn.cancel(DraftId(1), going_on=True)
    assert (turn.begun.drafts_made, turn.begun.drafts_dropped) == (0, 0)


def test_the_answers_record_has_the_turns_marks_and_every_drafts_calls() -> None:
    turn = under_way()
    turn.begun.marks.replace("endpoint", 900)
    first, answer = added(turn, 1), added(turn, 2)
    first.turn.llm_calls, answer.turn.llm_calls = 1, 1
    answer.turn.marks.replace("llm_sent", 950)
    ended = turn.end(DraftId(2), "answered", keep_audio=False)
    assert ended is answer.turn
    assert ended.marks.at_ns == {"endpoint": 900, "llm_sent": 950}
    assert (ended.llm_calls, ended.drafts_made, ended.outcome) == (2, 2, "answered")
    assert (ended.crew, list(ended.engines)) == (4, ["scripted"])


def test_without_an_answer_the_record_is_the_turns_own() -> None:
    turn = under_way()
    added(turn, 1)
    assert turn.end(None, "stopped", keep_audio=False) is turn.begun


def test_all_that_was_said_is_its_length_and_its_sound_where_that_is_kept() -> None:
    turn = under_way()
    turn.pieces = cast(Any, Long(seconds=2.0))
    turn.handed_on = [np.full(320, 1, np.int16)]
    turn.said = said(8000)
    ended = turn.end(None, "stopped", keep_audio=True)
    assert ended.utterance_s == pytest.approx(2.01)
    assert ended.sound is not None
    assert ended.sound.tolist() == [1] * 320 + [8000] * 160
    assert ended.marks.at_ns["last_voiced"] == turn.said.at_ns(160)


@pytest.mark.parametrize(
    ("outcome", "kept"), [("answered", True), ("not_addressed", False), ("no_speech", False)]
)
def test_what_was_not_said_to_us_is_kept_neither_as_sound_nor_as_words(outcome: Outcome, kept: bool) -> None:
    turn = under_way()
    turn.said = said(8000)
    added(turn, 1).turn.transcript = "My password is swordfish."
    ended = turn.end(DraftId(1), outcome, keep_audio=True)
    assert (ended.sound is not None) is kept
    assert (ended.transcript is None) is (outcome == "not_addressed")


def test_work_that_still_runs_after_the_end_is_known_and_pieces_are_wanted_no_more() -> None:
    turn = under_way()
    added(turn, 1)
    busy = added(turn, 2, busy=True)
    pieces = Long(seconds=1.0)
    turn.pieces = cast(Any, pieces)
    turn.end(None, "stopped", keep_audio=False)
    assert pieces.cancelled
    assert list(turn.leaving) == [busy, pieces]
