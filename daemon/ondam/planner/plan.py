"""The plan: what was asked for. The supervisor compares it with what the engines got."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ondam.messages import Phrase
from ondam.planner.arithmetic import Need
from ondam.types import Language, Stage

Policy = Literal["require", "warn"]
"""What happens when an engine did not get what the plan asked for: refuse to serve, or serve and say so."""


@dataclass(frozen=True, slots=True)
class PlannedEngine:
    """One engine that the fleet launches."""

    engine: str
    """Name of its folder and manifest."""
    stage: Stage
    model: str
    """Model id, or a path the user wrote."""
    model_path: Path | None
    """What the engine is given; None where the engine carries its own voice (espeak)."""
    model_sha256: str | None
    """Of the weights file, when the catalog knows it."""
    device: str
    """``cpu``, ``cuda:0``, …"""
    threads: int
    language: Language
    options: dict[str, Any] = field(default_factory=dict)
    """The manifest's options with the user's on top."""
    policy: Policy = "warn"
    spare: bool = False
    """A second voice that speaks only when the first is down."""
    reason: str = ""
    """Message code of why this one was chosen."""
    variant: str = "cpu"
    """Which of the engine's locks its environment is built from."""
    quantization: str = ""
    """Of its weights, as the model's card names it."""
    memory_gib: float = 0.0
    """What it is counted with: on its device, and where layers are spilled, in the main memory too."""
    need: Need | None = None
    """How ``memory_gib`` comes about; None where nothing is known of the model."""
    program_gib: float = 0.0
    """Of main memory, what the program itself takes of an engine whose model lies on a card."""
    reasons: tuple[Phrase, ...] = ()
    """Why this one: ``reason`` first."""
    expected: Expected | None = None
    """How long its stage should take; None where nothing is known."""

    @property
    def on_card_gib(self) -> float:
        """What lies on its card, or its cards."""
        if self.device == "cpu":
            return 0.0
        return self.memory_gib if self.need is None else min(self.memory_gib, self.need.gib)

    def main_gib(self, *, shared: bool) -> float:
        """What lies in the main memory. ``shared``: what lies on a card lies there too."""
        return round(self.memory_gib - (0.0 if shared else self.on_card_gib) + self.program_gib, 2)


@dataclass(frozen=True, slots=True)
class Expected:
    """How long a stage should take, and who says so."""

    ms: float
    """LLM: from the question to the end of the first clause. STT and TTS: to the text, to the first sound."""
    source: Phrase


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was looked at and not chosen."""

    stage: Stage
    engine: str
    model: str
    """Empty where no model of the engine was looked at."""
    quantization: str
    device: str
    reason: Phrase
    """With its sum, where memory is what it lacks."""
    need: Need | None = None
    budget_gib: float | None = None
    """What there was for it, in GiB."""
    fixed: bool = False
    """Whether the user had asked for it by name."""


@dataclass(frozen=True, slots=True)
class OutsideEngine:
    """An engine that the user configured by address. Never launched, never restarted, always unreported."""

    stage: Stage
    address: str
    """``unix:///path`` or ``tcp://host:port`` (Wyoming), ``http(s)://…`` or ``unix:///path`` (OpenAI)."""
    model: str = ""
    """Name to ask for, where the server holds several."""
    policy: Policy = "warn"
    language: Language = "en"
    """Of the first question that it is asked."""
    temperature: float = 0.3
    """Of a language server's answers: some refuse what is not theirs."""
    patience_s: float = 60.0
    """For its first answer: a server that loads a model when it is first asked for it takes so long."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that must be up for a turn."""

    launched: tuple[PlannedEngine, ...]
    outside: tuple[OutsideEngine, ...] = ()
    refused: tuple[Refusal, ...] = ()
    """What would be larger and does not fit, and what this machine cannot run."""

    def planned(self, engine: str) -> PlannedEngine | None:
        """How the engine of this name is launched; None where it is not."""
        return next((planned for planned in self.launched if planned.engine == engine), None)
