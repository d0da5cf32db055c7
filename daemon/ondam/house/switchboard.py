"""Who does each stage right now: from the fleet's engines to clients that talk to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.config import Config
from ondam.errors import EngineError
from ondam.journal.warmth import Warmth
from ondam.pipeline.ports import Lease, Recognizer, Responder, Synthesizer
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.status import EngineStatus
from ondam.types import Language, Stage

STAGES: tuple[Stage, ...] = ("stt", "llm", "tts")


@dataclass
class _Answers:
    """Of any engine to any turn, which all leases share."""

    last_at: float | None = None


class Switchboard:
    """Implements ``ports.Engines`` on the fleet, or on one crew of it for a lease.

    Every call looks anew: engines die and come back.
    """

    def __init__(
        self,
        fleet: Fleet | Crew,
        config: Config,
        engines: Mapping[str, EngineFolder],
        clock: Callable[[], float] = time.monotonic,
        answers: _Answers | None = None,
    ) -> None:
        self._fleet = fleet
        self._config = config
        self._engines = engines
        self._clock = clock
        self._tools = config.llm.definitions()
        self._answers = answers or _Answers()

    def configure(self, config: Config) -> None:
        """Other settings from now on; what is leased goes on with those before."""
        self._tools = config.llm.definitions()
        self._config = config

    def lease(self) -> Lease:
        """Those who serve now, for one turn."""
        crew = self._fleet if isinstance(self._fleet, Crew) else self._fleet.crew
        crew.hold()
        return Lease(self.of(crew), crew.number, crew.let_go)

    def of(self, crew: Crew) -> Switchboard:
        """The same for one crew alone, also before it serves."""
        return Switchboard(crew, self._config, self._engines, self._clock, self._answers)

    def recognizer(self) -> Recognizer:
        """The STT engine that is ready. Raises EngineError ``stt_down``."""
        return WyomingRecognizer(self._ready("stt").address)

    def responder(self) -> Responder:
        """The LLM engine that is ready. Raises EngineError ``llm_down``."""
        engine = self._ready("llm")
        llm = self._config.llm
        return OpenAIResponder(
            engine.address,
            llm.name if engine.outside else engine.model or "",
            temperature=llm.temperature,
            first_token_timeout_s=llm.first_token_timeout_s,
            idle_timeout_s=llm.idle_timeout_s,
            context_tokens=llm.context_tokens or _context_length(engine),
            tools=self._tools,
        )

    def synthesizer(self, language: Language, *, spare: bool = False) -> Synthesizer:
        """A voice that is ready and knows the language. Raises EngineError ``tts_down``."""
        voice = self._voice(language, spare)
        if voice is None:
            raise self._nobody("tts")
        return WyomingSynthesizer(voice.address)

    def answered(self, stage: Stage) -> None:
        """Count a real request of a turn towards the engine's settling."""
        self._answers.last_at = self._clock()
        engine = self._fleet.engine(stage)
        if engine is not None:
            self._fleet.note_answer(engine.name)

    def failed(self, stage: Stage, code: str) -> None:
        """Tell the fleet of a request that failed: it knows which failures mean that an engine hangs."""
        engine = self._fleet.engine(stage)
        if engine is not None:
            self._fleet.note_failure(engine.name, code)

    def warmth(self) -> Warmth:
        """How long the engines of a turn have served; nothing at all while a stage has none."""
        engines = [self._fleet.engine(stage) for stage in STAGES]
        ready = [engine for engine in engines if engine is not None]
        return Warmth(
            answers=min(engine.answers for engine in ready) if len(ready) == len(STAGES) else 0,
            ready_s=min((engine.ready_s for engine in ready if not engine.outside), default=None),
            idle_s=None if self._answers.last_at is None else self._clock() - self._answers.last_at,
        )

    def identities(self) -> dict[str, dict[str, object]]:
        """Which processes serve now, and how long each took until it was warm."""
        return {
            engine.name: {
                "pid": engine.pid,
                "started_at": (engine.report or {}).get("started_at"),
                "load_s": None if engine.outside else round(engine.uptime_s - engine.ready_s, 1),
            }
            for stage in STAGES
            if (engine := self._fleet.engine(stage)) is not None
        }

    def voice(self, language: Language, *, spare: bool = False) -> str | None:
        """Name of the engine that speaks this language now, or that would if ``spare`` came first."""
        engine = self._voice(language, spare)
        return engine.name if engine else None

    def _voice(self, language: Language, spare: bool = False) -> EngineStatus | None:
        """The first voice before the spare, or after it; an engine outside is taken at its word."""
        able = [
            engine
            for engine in self._fleet.status()
            if engine.stage == "tts"
            and engine.state == "ready"
            and (engine.outside or language in self._engines[engine.name].manifest.capabilities.languages)
        ]
        return min(able, key=lambda engine: engine.spare != spare, default=None)

    def _ready(self, stage: Stage) -> EngineStatus:
        engine = self._fleet.engine(stage)
        if engine is None:
            raise self._nobody(stage)
        return engine

    def _nobody(self, stage: Stage) -> EngineError:
        crew = self._fleet if isinstance(self._fleet, Crew) else self._fleet.crew
        return EngineError("engine_switching" if stage in crew.switching else f"{stage}_down")


def _context_length(engine: EngineStatus) -> int:
    """What the engine reports that one conversation may hold, in tokens; 0 where it reports nothing."""
    told = (engine.report or {}).get("context_length")
    return told if isinstance(told, int) else 0
