"""What the control API asks of the daemon. Implemented by ``ondam.assistant``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from ondam.control.wire import (
    Budget,
    DeviceKind,
    Devices,
    Diagnostics,
    Event,
    Mode,
    Reloaded,
    Report,
    Said,
    Series,
    Settings,
    Status,
    Switch,
    Turn,
    WantedMode,
)
from ondam.journal.reading import Selection
from ondam.measure.budget_answer import Wanted
from ondam.pipeline.ports import SpeechStart, Transcript
from ondam.types import Audio, Language, Samples


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What the resident language engine answered. Closing ``chunks`` closes the connection to it."""

    status: int
    headers: Mapping[str, str]
    """Only ``Content-Type`` is passed on."""
    chunks: AsyncGenerator[bytes, None]
    """The body as it comes, never gathered."""


class Daemon(Protocol):
    """Every call that may wait is cancelled when its caller leaves. All may raise OndamError."""

    def status(self, language: Language | None = None) -> Status:
        """Everything at this moment, its texts in ``language``, by default the daemon's."""

    def subscribe(self, *, levels: bool = False) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """A snapshot, then changes. Ends when the daemon ends; ControlError when the reader is too slow.

        Only with ``levels`` what is fleeting: how loud it is, and how far the running turn has come.
        """

    async def report(self, selection: Selection, language: Language) -> Report:
        """What the journal's turns come to, findings in ``language``. Raises JournalError."""

    async def series(self, selection: Selection, window: str) -> Series:
        """Figures over time; ``window``: what was asked as ``since``. Raises JournalError."""

    async def budget(self, wanted: Wanted, language: Language) -> Budget:
        """What the wait is made of, texts in ``language``. Raises BudgetError where it cannot be told."""

    def metrics(self) -> bytes:
        """All turns of this daemon as Prometheus text."""

    async def ask(self, text: str, speak: bool) -> Turn:
        """One turn from typed text; ``speak``: also aloud. Returns when it is whole (and heard)."""

    async def say(self, text: str, language: Language | None) -> Said:
        """Speak ``text`` on the speaker; returns when it was heard."""

    async def listen(self, timeout_s: float) -> Turn:
        """Push to talk: the next utterance from the microphone and its answer.

        ControlError ``heard_nothing`` after ``timeout_s`` without voice, ``listen_muted`` while muted.
        """

    async def set_mode(self, mode: WantedMode) -> Mode:
        """When to listen from now on ("unmuted": as before it was muted); the mode in force.

        Returns when it is so: "muted" is closed. Goes on to its end when the caller leaves.
        """

    async def press(self) -> None:
        """The talk button goes down. ControlError ``listen_muted``, AudioError ``no_microphone_now``."""

    async def release(self) -> None:
        """The talk button is let go. Nothing happens when it is not down."""

    async def toggle(self) -> bool:
        """``press`` or ``release``; whether the button is down now."""

    async def stop_speaking(self) -> None:
        """Fall silent. Nothing happens when nothing is being spoken."""

    async def wav_turn(
        self, audio: Audio, language: Language | None, reset_history: bool, settings: Mapping[str, object]
    ) -> tuple[Turn, Audio]:
        """One whole turn from ``audio``, in real time on the resident engines, and the spoken answer.

        ``settings``: tables of the configuration that hold for this turn alone; ConfigError when they cannot.
        """

    async def transcribe(self, audio: Audio, language: Language | None, names: Sequence[str]) -> Transcript:
        """The words in ``audio`` (any rate, any length); ``names`` bias it."""

    def synthesize(self, text: str, language: Language | None) -> AsyncGenerator[SpeechStart | Samples, None]:
        """``SpeechStart``, then samples as they come. Closing it stops the engine."""

    async def chat(self, body: Mapping[str, object]) -> ChatAnswer:
        """Pass an OpenAI chat completions request to the resident language engine."""

    async def turns(self, limit: int) -> list[Turn]:
        """The last turns, newest first."""

    async def restart_engine(self, name: str) -> None:
        """Start the engine anew; ControlError ``engine_not_running_here`` when there is none of that name."""

    async def switch(self, wanted: Mapping[str, str], keep: bool) -> Switch:
        """Change the plan: keys such as ``llm.model``. Returns when over; goes on when the caller leaves.

        ConfigError and ModelError where it cannot be planned, EngineError where the new engine did not come
        up; then the old ones serve. ControlError ``switch_under_way``.
        """

    async def engine_log(self, name: str, lines: int) -> str:
        """The last lines of the engine's log; ControlError ``engine_not_running_here`` likewise."""

    async def devices(self) -> Devices:
        """What could be listened with and spoken through. AudioError where the sound system does not work."""

    async def choose_devices(self, wanted: Mapping[DeviceKind, str | None], keep: bool) -> Devices:
        """Use these from now on; None is the system's default. Returns when it is so.

        ConfigError where ``keep`` cannot be; then nothing has changed.
        """

    async def settings(self, language: Language) -> Settings:
        """What may be changed while it runs, in ``language``."""

    async def set_settings(self, wanted: Mapping[str, object], keep: bool, language: Language) -> Settings:
        """Change all of these or none. Returns when it is so; goes on when the caller leaves.

        ConfigError with every problem, and what ``switch`` raises where another voice has to be loaded.
        """

    async def reload(self) -> Reloaded:
        """Read config.toml again. ConfigError with all its problems; then nothing has changed."""

    async def diagnostics(self, language: Language) -> Diagnostics:
        """For a report of a fault: no sound, no words, no secrets."""

    async def shutdown(self) -> None:
        """Begin to end; returns at once."""
