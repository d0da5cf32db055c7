"""What the tray knows of the daemon, and how each event changes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from ondam.control import wire
from ondam.messages import Message

POPULATIONS = ("settled", "after_idle", "cold")
"""Whose figures are shown, the most telling first."""


Verb = Literal[
    "listen",
    "stop",
    "mute",
    "mode",
    "microphone",
    "speaker",
    "panel",
    "diagnostics",
    "login",
    "quit",
    "shutdown",
]


@dataclass(frozen=True, slots=True)
class Remark:
    """What a click came to: told where ``verb`` was clicked; None: it could not be done."""

    text: str
    verb: Verb | None = None


@dataclass(frozen=True, slots=True)
class Today:
    """First audio of today's spoken turns: those of ``population`` alone, since kinds are never mixed."""

    population: str
    turns: int
    p50_ms: float
    p95_ms: float
    slowest_ms: float


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything the menu is made of. ``status`` None: there is no daemon, and ``trouble`` says why.

    ``last``: the last turn that was heard; ``targets_ms``: what each stage may take, by its name.
    """

    status: wire.Status | None = None
    trouble: Message | None = None
    last: wire.Turn | None = None
    targets_ms: Mapping[str, float] = field(default_factory=dict)
    today: Today | None = None
    devices: wire.Devices | None = None
    asking: bool = False
    """One question is listened to: it was chosen and is not over."""
    at_login: bool = False
    remark: Remark | None = None
    """For a while, where a person would not see it otherwise."""


def lost(seen: Seen, trouble: Message) -> Seen:
    """The daemon is gone: what it told is not true any more, but for the figures of the last turn."""
    return replace(seen, status=None, trouble=trouble, devices=None, asking=False)


def known(seen: Seen, status: wire.Status) -> Seen:
    """A whole status."""
    return replace(seen, status=status, trouble=None, last=_heard(status["last_turn"]) or seen.last)


def fold(seen: Seen, event: wire.Event) -> Seen:
    """After ``event``. Faults and engines come with the next whole status, in the reader's language."""
    if event["type"] == "snapshot":
        return known(seen, event["status"])
    if seen.status is None:
        return seen
    match event["type"]:
        case "state" if event["session"] == seen.status["session"]:  # a turn from a WAV has another
            return replace(seen, status=_with(seen.status, state=event["state"]))
        case "mode":
            return replace(seen, status=_with(seen.status, mode=event["mode"]))
        case "turn":
            return replace(seen, last=_heard(event["turn"]) or seen.last)
        case _:
            return seen


def in_a_line(told: Message) -> str:
    """What happened, and what to do about it."""
    return f"{told.text} → {told.next}" if told.next else told.text


def today(report: wire.Report) -> Today | None:
    """From a report of today's turns: of the conditions in force, the first population that has figures."""
    for group in report["groups"][:1]:
        for name in POPULATIONS:
            # Any: the figures of a population, as docs/report.md has them.
            figures = cast("Mapping[str, Any]", group["populations"].get(name, {})).get("first_audio_ms", {})
            if figures.get("n"):
                return Today(name, figures["n"], figures["p50"], figures["p95"], figures["max"])
    return None


def _heard(turn: wire.Turn | None) -> wire.Turn | None:
    """One that was only written tells nothing of the wait."""
    return turn if turn is not None and turn["first_audio_ms"] is not None else None


def _with(status: wire.Status, **changed: object) -> wire.Status:
    return cast("wire.Status", {**status, **changed})
