"""What there is to know about an engine, for everyone outside the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ondam.messages import Phrase
from ondam.supervisor.isolation import Isolation

if TYPE_CHECKING:  # whoever reads a journal needs no planner
    from ondam.planner.plan import Policy
    from ondam.types import Stage

EngineState: TypeAlias = Literal["starting", "loading", "ready", "restarting", "failed", "stopped"]
"""``starting``: about to be launched. ``loading``: the process runs and has not answered its first request
yet. ``restarting``: it ended and is waiting to be launched again. ``failed``: stays down until a person
restarts it.
"""


Fit: TypeAlias = Literal["unknown", "as_planned", "differs", "unreported", "refused"]
"""How what it got compares with what was asked: not reported yet; as asked; otherwise, and used all the same
(``warn``); it says nothing, and is used (``warn``); otherwise or silent, and not used (``require``).
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a person should know: a message code and what fills it."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)


def in_words(what: str) -> Phrase:
    """The fact ``what`` of a difference, ``device`` or ``provider of vocoder``, as a person says it."""
    field, _, session = what.partition(" of ")
    return Phrase(f"differs_{field}", session=session)


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine at one moment."""

    name: str
    stage: Stage
    state: EngineState
    address: str
    """Where to talk to it: ``unix:///path``, or what the user wrote for an engine outside."""
    spare: bool = False
    """The last-resort voice."""
    outside: bool = False
    """Reached by address; not ours to start, and it reports nothing."""
    policy: Policy = "warn"
    """What happens when it did not get what was asked for."""
    fit: Fit = "unknown"
    pid: int | None = None
    loads: int | None = None
    """How often it has loaded weights since its start: 1, or 0 without weights. None: not told."""
    device: str | None = None
    model: str | None = None
    model_path: Path | None = None
    rss_mib: float | None = None
    """With everything it started; looked at with every ping."""
    isolation: Isolation | None = None
    """What keeps it from the network, looked at when it became ready. None: not yet, or not ours."""
    restarts: int = 0
    """How often it was launched again since the daemon began."""
    uptime_s: float = 0.0
    """Since its process started."""
    ready_s: float = 0.0
    """Since it became ready, its weights loaded and warm; 0 while it is not."""
    answers: int = 0
    """Answers it has given to the daemon since it became ready."""
    report: Mapping[str, Any] | None = None
    """What it says it got (docs/engines.md)."""
    faults: tuple[Fault, ...] = ()
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Something about an engine became different. ``fault``: what the user should be told about it."""

    status: EngineStatus
    fault: Fault | None = None
