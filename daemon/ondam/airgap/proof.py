"""What was found, as an auditor gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from ondam.airgap.attempts import Attempt
from ondam.airgap.files import Opened
from ondam.airgap.sockets import Listening
from ondam.supervisor.isolation import Isolation
from ondam.supervisor.offline import secret

Around: TypeAlias = Literal["namespace", "filter", "open"]
"""Where the daemon of the proof ran: in a network of its own with nothing but a loopback; under a filter that
knows Unix sockets alone (the service's ``RestrictAddressFamilies=AF_UNIX``); or in the machine's network."""

CUT = "…"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine that took part."""

    name: str
    stage: str
    model: str | None
    state: str
    outside: bool
    """Reached by an address that the user wrote; nothing is known of its process."""
    isolation: Isolation | None
    versions: Mapping[str, object] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """One run of ``ondam doctor --air-gap``."""

    at: str
    """ISO 8601, with offset."""
    command: str
    """What to type to repeat it."""
    versions: Mapping[str, str]
    user: str
    """Whose rights the daemon and its engines had: of the system's, those of the service's user."""
    around: Around
    means: str
    """What held the daemon itself (``airlock``)."""
    tracer: str | None
    """Name and version of what watched; None: nothing did."""
    watched_s: float
    turns: tuple[Mapping[str, object], ...]
    """``outcome`` and ``first_audio_ms`` of each."""
    engines: tuple[Engine, ...]
    attempts: tuple[Attempt, ...] = ()
    listening: tuple[Listening, ...] = ()
    opened: tuple[Opened, ...] = ()

    @property
    def tried(self) -> tuple[Attempt, ...]:
        """Attempts alone, without what was noted."""
        return tuple(one for one in self.attempts if one.verdict == "attempt")

    @property
    def exposed(self) -> tuple[Listening, ...]:
        """Sockets that others than their owner, or its group, reach, and nobody wished for; an engine's own
        loopback is its own."""
        own = {e.name for e in self.engines if e.isolation is not None and "namespace" in e.isolation.means}
        return tuple(
            one
            for one in self.listening
            if not one.private and not one.configured and (one.process not in own or one.family == "unix")
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """Codes of messages, worst first; none: the proof holds."""
        found = []
        if self.tried:
            found.append("airgap_tried")
        if self.tracer is None:
            found.append("airgap_untraced")
        if any(turn["outcome"] != "answered" for turn in self.turns) or not self.turns:
            found.append("airgap_no_turn")
        if self.exposed:
            found.append("airgap_exposed")
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Everything; ``ok`` and ``problems`` say what follows from it."""
        made = asdict(self)
        made["engines"] = [
            {
                **asdict(engine),
                "isolation": None
                if engine.isolation is None
                else {
                    "network": engine.isolation.network,
                    "means": engine.isolation.means,
                    "closed": engine.isolation.closed,
                    "remains": engine.isolation.remains,
                },
            }
            for engine in self.engines
        ]
        made["listening"] = [
            {**asdict(one), "mode": None if one.mode is None else f"{one.mode:04o}", "private": one.private}
            for one in self.listening
        ]
        return {"ok": not self.problems, "problems": list(self.problems), **made}


def cut(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what nobody else is to know, sorted."""
    return {name: CUT if secret(name) and value else _bare(value) for name, value in sorted(environ.items())}


def _bare(value: str) -> str:
    """An address without the user and the password that may stand in it."""
    scheme, mark, rest = value.partition("://")
    user, at, host = rest.partition("@")
    return f"{scheme}://{CUT}@{host}" if mark and at and "/" not in user else value
