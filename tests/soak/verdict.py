"""What became of a turn, in the words of the promise: answered, excused, ended by its user, silent. Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ondam.control import wire

Verdict: TypeAlias = Literal[
    "answered",  # heard, or shown where that was wanted
    "excused",  # it could not be answered, and that was said aloud (or shown, where nothing was to be heard)
    "ended by its user",  # silence was wished for, somebody spoke over it, or whoever asked went away
    "no speech",  # noise, and taken for such
    "device gone",  # unheard or lost, and the status says which device is gone
    "told",  # its caller got an error in place of a turn, one that a fault explains
    "silent",  # none of these: nobody knows why nothing was heard, or a fault of ours is why
]

TOLD = frozenset({"answer_too_late", "excuse_tts", "nobody_heard"})
"""Codes of errors in place of a turn that faults explain: what ``say`` raises when its voice or the speaker
fails. Any other is a surprise."""

ENDED = {"stopped", "interrupted"}
OURS = "internal_fault"


def verdict(turn: wire.Turn, kind: str, *, aloud: bool, device_gone: bool, others: bool) -> Verdict:
    """``device_gone``: a sound device was missing meanwhile; ``others``: somebody else may have ended it."""
    outcome, sounded = turn["outcome"], turn["audio"]["seconds"] > 0
    if OURS in {turn["fault"], turn["cause"]}:
        return "silent"
    if outcome in {"answered", "said"}:
        return "answered" if sounded or (turn["reply"] and not aloud) else "silent"
    if outcome in {"failed", "no_answer"} and turn["fault"] and (sounded or not aloud):
        return "excused"
    if outcome in ENDED and (kind in {"stop", "barge", "leave"} or others):
        return "ended by its user"
    if outcome == "no_speech" and kind in {"noise", "barge"}:
        return "no speech"
    if outcome in {"unheard", "lost", "stopped", "interrupted", "failed"} and device_gone:
        return "device gone"
    return "silent"


def verdict_of_error(code: str, kind: str) -> Verdict:
    """What an error in place of a turn comes to."""
    if code == "wav_without_speech" and kind in {"noise", "barge"}:
        return "no speech"
    return "told" if code in TOLD else "silent"
