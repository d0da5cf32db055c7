"""The daemon as its control socket sees it: one conversation at the microphone, and others on request."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import psutil

from ondam import __version__
from ondam.audio import (
    NoMicrophone,
    WavMicrophone,
    WavSpeaker,
    is_device,
    open_microphone,
    open_speaker,
    resampled,
)
from ondam.audio.duplex import Duplex, EchoMode
from ondam.audio.faults import NOTICES
from ondam.clients.passthrough import forward
from ondam.conditions import at_the_moment, lasting_of
from ondam.config import Config
from ondam.control import wire
from ondam.control.api import ChatAnswer
from ondam.control.events import Broadcast
from ondam.control.metrics import Metrics
from ondam.control.shapes import engine_shape, fault_shape, switch_shape
from ondam.conversation import for_conversation
from ondam.dialog.attention import Attention
from ondam.dialog.history import History
from ondam.ears import Ears
from ondam.errors import AudioError, ControlError, EngineError
from ondam.journal.apart import report_apart
from ondam.journal.conditions import Conditions
from ondam.journal.reading import Selection
from ondam.journal.recorder import Recorder, read_turns
from ondam.journal.steady import Steadiness
from ondam.journal.summary import Summary
from ondam.journal.turn import Turn
from ondam.measure.budget_answer import Wanted, answer
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_reading import own_of
from ondam.memory import give_back
from ondam.messages import Phrase
from ondam.pipeline.phrases import Phrases
from ondam.pipeline.ports import (
    EndOfTurn,
    Microphone,
    Speaker,
    SpeechEnd,
    SpeechStart,
    Transcript,
    VoiceActivity,
)
from ondam.pipeline.respond import prefill, prompt
from ondam.places import Places
from ondam.planner.probe import on_battery
from ondam.session import Session
from ondam.speech import ClauseStream, spoken, warm_up
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.log import tail
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.status import Change, EngineStatus, Fault
from ondam.switchboard import STAGES, Switchboard
from ondam.switching import Planner, Switch, Switching
from ondam.types import HEARING_RATE_HZ, Audio, Language, Mode, Samples, Stage

log = logging.getLogger(__name__)

AFTER_WAV_S = 2.0
"""After the end of a WAV and the endpoint's window a turn must have begun: else there was no speech."""


class Ending(Protocol):
    """Makes the daemon end; not ``asked`` means that it broke down."""

    def __call__(self, *, asked: bool) -> None:
        """Return at once."""


class Assistant:
    """Implements ``control.api.Daemon``."""

    def __init__(
        self,
        *,
        config: Config,
        places: Places,
        planner: Planner,
        config_file: Path,
        fleet: Fleet,
        engines: Mapping[str, EngineFolder],
        recorder: Recorder,
        voice: Callable[[], VoiceActivity],
        end_of_turn: EndOfTurn | None,
        end: Ending,
    ) -> None:
        """``planner`` plans for this machine anew, ``config_file`` is where that is remembered.

        ``voice`` makes a voice activity detector; ``end`` makes the daemon end.
        """
        self.config = config
        self.language: Language = config.spoken_language
        self._places = places
        self._fleet = fleet
        self._switching = Switching(fleet, config, config_file, planner, self)
        self._recorder = recorder
        self._voice = voice
        self._end_of_turn = end_of_turn
        self._end = end
        self._engines = Switchboard(fleet, config, engines)
        self._broadcast = Broadcast()
        self._metrics = Metrics(config.measure.budget_ms)
        measure = config.measure
        self._summary = Summary(Steadiness(measure.steady_turns, measure.steady_within))
        self._summary_before = self._summary
        """Of turns that ended on engines which serve no more: told to nobody."""
        self._began = time.monotonic()
        self._faults: dict[str, tuple[Fault, str]] = {}
        """What is wrong now: source (``microphone``, ``engine:NAME``) to the fault and since when."""
        self._run = uuid.uuid4().hex[:8]
        """Names the sessions of this run: a process id comes back, in a container at once."""
        self._sessions = 0
        self._wav_history = History(config.llm.history_turns)
        self._last_turn: dict[str, Any] | None = None
        self._turns = 0
        self._conditions: Conditions | None = None
        """What the numbers are made under; None when an engine has changed since they were looked at."""
        self._noting_ns = self._counting_ns = 0
        """Processor time that remembering turns has taken of the event loop so far."""
        self._session: Session | None = None
        self._conversations: set[Session] = set()
        """All that go on now, that at the microphone included."""
        self._duplex: Duplex | None = None
        """Takes our own voice out of the microphone; None where no microphone hears our speaker."""
        self._speaker: Speaker | None = None
        self._ears: Ears | None = None
        self._restarting: set[asyncio.Task[None]] = set()
        self._preparing: set[asyncio.Task[None]] = set()
        self._prepared: dict[str, int | None] = {}
        """Engine to the process id of the one that everything was prepared with."""
        self._phrases = Phrases(self._engines)
        fleet.subscribe(self._engine_changed)

    async def start(self) -> None:
        """Open the devices and begin to listen."""
        await asyncio.to_thread(warm_up, self.language)
        self._speaker = open_speaker(
            self.config.audio.speaker,
            latency_ms=self.config.audio.speaker_latency_ms,
            on_fault=self._device_fault("speaker"),
        )
        listen = self.config.listen
        self._session = self._new_session(
            microphone=NoMicrophone() if listen.mode == "muted" else self._open_microphone(),
            speaker=self._speaker,
            attention=Attention(mode=listen.mode, names=listen.names, language=self.language),
            full_duplex=self._full_duplex,
        )
        self._ears = Ears(
            self._session,
            self._open_microphone,
            longest_press_s=self.config.detect.max_utterance_s,
            cues=listen.cues,
            broke_down=self._hearing_broke_down,
            closed=self._microphone_closed,
            full_duplex=self._full_duplex,
        )
        self._ears.start()
        self._broadcast.publish({"type": "state", "session": self._session.name, "state": self._state()})

    async def close(self) -> None:
        """Fall silent, let go of the devices, end every subscription."""
        try:
            await self._switching.close()
            if self._ears is not None:
                await self._ears.close()
            if self._session is not None:
                await self._session.close()
        finally:
            for task in self._preparing:
                task.cancel()
            await asyncio.gather(*self._preparing, return_exceptions=True)
            self._broadcast.close()

    def _open_microphone(self) -> Microphone:
        audio = self.config.audio
        microphone = open_microphone(audio.microphone, on_fault=self._device_fault("microphone"))
        if self._speaker is None or not (is_device(audio.microphone) and is_device(audio.speaker)):
            return microphone  # a file hears nobody
        if self._duplex is None:
            self._duplex = Duplex(microphone, self._speaker, setting=audio.echo, on_change=self._echo_changed)
        else:
            self._duplex.reopen(microphone)  # it is the room that it knows
        return self._duplex

    def _microphone_closed(self) -> None:
        for what in ("microphone", "echo"):
            self._cleared(what)

    def _full_duplex(self) -> bool:
        return self._duplex is None or self._duplex.trusted

    def _echo_changed(self, mode: EchoMode) -> None:
        if mode != "half_duplex":
            self._cleared("echo")
        elif self.config.audio.echo != "off":  # else it is what the user wants
            self._fault("echo", Fault("echo_half_duplex", {}))

    def _hearing_broke_down(self, error: BaseException | None) -> None:
        log.error("the conversation at the microphone broke down", exc_info=error)
        self._end(asked=False)  # A daemon that no longer hears must not look alive.

    def _new_session(self, **ports: Any) -> Session:
        self._sessions += 1
        config = ports.pop("config", self.config)
        made = Session(
            f"{self._run}-{self._sessions}",
            config=config,
            language=ports.pop("language", self.language),
            engines=self._engines,
            voice=ports.pop("voice", None) or self._voice(),
            end_of_turn=self._end_of_turn,
            clock=time.monotonic_ns,
            phrases=self._phrases,
            on_battery=on_battery,
            finished=partial(self._turn_finished, config),
            changed=lambda event: self._broadcast.publish(cast(wire.Event, event)),
            **ports,
        )
        self._conversations.add(made)
        return made

    # What the control API asks.

    def status(self, language: Language | None = None) -> wire.Status:
        """Everything at this moment, in ``language``, by default the daemon's."""
        language = language or self.language
        if self._recorder.lost and "journal" not in self._faults:
            self._fault(
                "journal",
                Fault("journal_turns_lost", {"count": self._recorder.lost, "path": self._places.journal}),
            )
        fits = {engine.fit for engine in self._fleet.status()}
        last = self._switching.last
        return {
            "version": __version__,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self._began, 1),
            "state": self._state(),
            "mode": self._session.mode if self._session else self.config.listen.mode,
            "echo": self._duplex.mode if self._duplex else None,
            "language": self.language,
            "microphone": self._device("microphone"),
            "speaker": self._device("speaker"),
            "engines": [engine_shape(engine, language) for engine in self._fleet.status()],
            "fit": next((fit for fit in wire.WORST_FIRST if fit in fits), "unknown"),
            "faults": [fault_shape(fault, language, since) for fault, since in self._faults.values()],
            "turns": self._turns,
            "last_turn": cast(wire.Turn | None, self._last_turn),
            "report": self._summary.as_json(),
            "conditions": self.conditions(),
            "switch": None if last is None else switch_shape(last, language),
        }

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[wire.Event]]:
        """A snapshot, then changes."""
        return self._broadcast.subscribe(lambda: {"type": "snapshot", "status": self.status()})

    async def report(self, selection: Selection, language: Language) -> wire.Report:
        """What the journal's turns come to."""
        journal = self._places.journal
        if not journal.exists():  # nobody has spoken yet
            return {"turns": 0, "more": False, "skipped": 0, "groups": []}
        return cast(wire.Report, await report_apart(journal, selection, language))

    async def budget(self, wanted: Wanted, language: Language) -> wire.Budget:
        """What the wait is made of."""
        measure = self.config.measure
        own = await asyncio.to_thread(own_of, self._places.journal, measure) if wanted.own else None
        return cast(wire.Budget, answer(wanted, knowledge(), own, measure.budget_ms, language))

    def metrics(self) -> bytes:
        """All turns of this daemon as Prometheus text."""
        return self._metrics.text(self.status(), self._recorder.lost)

    async def ask(self, text: str, speak: bool) -> wire.Turn:
        """One turn from typed text."""
        return self._wire_turn(await self._conversation().ask(text, aloud=speak))

    async def say(self, text: str, language: Language | None) -> wire.Said:
        """Speak ``text``; returns when it was heard."""
        named = language or self.language
        if not (await asyncio.to_thread(spoken, text, named)).clauses:
            raise ControlError("nothing_to_say")
        turn = await self._conversation().say(text, language)
        if turn.outcome == "failed":
            raise EngineError(turn.fault or "excuse_tts")
        if turn.outcome == "unheard":
            raise AudioError("nobody_heard", name=self._conversation().speaker.name)
        return {"text": text, "language": named, "audio": {"seconds": round(turn.answer_s, 3)}}

    async def listen(self, timeout_s: float) -> wire.Turn:
        """Push to talk."""
        self._listening_ears()
        turn = await self._conversation().listen(timeout_s)
        if turn.outcome == "no_speech":
            raise ControlError("heard_nothing", seconds=timeout_s)
        return self._wire_turn(turn)

    async def set_mode(self, mode: Mode) -> Mode:
        """When to listen from now on. Lasts until the daemon ends."""
        return await self._own_ears().set_mode(mode)

    async def press(self) -> None:
        """The talk button goes down."""
        self._listening_ears().press()

    async def release(self) -> None:
        """The talk button is let go."""
        self._own_ears().release()

    async def toggle(self) -> bool:
        """The talk button goes down, or is let go; whether it is down now."""
        ears = self._own_ears() if self._conversation().pressed else self._listening_ears()
        return ears.toggle()

    async def stop_speaking(self) -> None:
        """Fall silent."""
        self._conversation().stop()

    async def wav_turn(
        self, audio: Audio, language: Language | None, reset_history: bool, settings: Mapping[str, object]
    ) -> tuple[wire.Turn, Audio]:
        """One whole turn from ``audio`` in real time, in a conversation of its own on the same engines."""
        config = for_conversation(self.config, settings)
        # Nobody waits in the room: a filler would only be part of the recording.
        config = config.model_copy(update={"filler": config.filler.model_copy(update={"after_ms": 0})})
        if config.endpoint.mode == "smart_turn" and self._end_of_turn is None:
            # The model was not loaded at the start: the plain window would be taken for smart-turn.
            raise ControlError("control_bad_request", reason=Phrase("reason_no_smart_turn"))
        if reset_history:
            self._wav_history = History(self.config.llm.history_turns)
        history = self._wav_history  # now: while the sound is made ready, another turn may end
        speaker = WavSpeaker()
        heard = await asyncio.to_thread(resampled, audio, HEARING_RATE_HZ)
        session = self._new_session(
            config=config,
            language=language or self.language,
            voice=await asyncio.to_thread(self._voice),
            microphone=WavMicrophone(heard),
            speaker=speaker,
            history=history,
            full_duplex=lambda: True,  # a file hears nobody
        )
        hearing = asyncio.create_task(session.run(), name="hearing a WAV")
        loop = asyncio.get_running_loop()
        window_ms = max(config.endpoint.incomplete_ms, config.endpoint.silence_ms)
        until = loop.time() + audio.seconds + window_ms / 1000 + AFTER_WAV_S
        try:
            while True:
                over = session.next_turn()
                turn = await self._turn_of_wav(session, over, hearing, until)
                # A cough before the question is no question.
                if turn.outcome != "no_speech" or loop.time() > until - AFTER_WAV_S:
                    break
            self._wav_history = session.history
            return self._wire_turn(turn), speaker.recording()
        finally:
            await session.close()
            self._conversations.discard(session)
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _turn_of_wav(
        self, session: Session, over: asyncio.Future[Turn], hearing: asyncio.Task[None], until: float
    ) -> Turn:
        both: set[asyncio.Future[Any]] = {over, hearing}
        left = until - asyncio.get_running_loop().time()
        await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if not over.done() and not hearing.done():
            if session.phase == "listening":
                raise AudioError("wav_without_speech")
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            hearing.result()  # raises what broke it
        return over.result() if over.done() else await over

    async def transcribe(self, audio: Audio, language: Language | None, names: Sequence[str]) -> Transcript:
        """The words in ``audio``."""
        lease = self._engines.lease()
        try:
            recognizer = lease.engines.recognizer()
            heard = await asyncio.to_thread(resampled, audio, HEARING_RATE_HZ)
            names = names or self.config.stt.names
            return await recognizer.transcribe(heard, language or self.language, names)
        finally:
            lease.let_go()

    async def synthesize(
        self, text: str, language: Language | None
    ) -> AsyncGenerator[SpeechStart | Samples, None]:
        """``text`` as sound, clause by clause; the voice's rate is the same for all clauses."""
        language = language or self.language
        clauses = ClauseStream(language)
        started = False
        lease = self._engines.lease()
        try:
            for clause in (*clauses.feed(text), *clauses.finish()):
                stream = lease.engines.synthesizer(language).synthesize(clause.spoken, language)
                async with aclosing(stream) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, SpeechEnd):
                            continue
                        if not isinstance(piece, SpeechStart):
                            yield piece
                        elif not started:
                            started = True
                            yield piece
        finally:
            lease.let_go()

    async def chat(self, body: Mapping[str, object]) -> ChatAnswer:
        """Pass an OpenAI chat completions request to the resident language engine."""
        crew = self._fleet.crew
        engine = crew.engine("llm")
        if engine is None:
            raise EngineError("engine_switching" if "llm" in crew.switching else "llm_down")
        crew.hold()
        try:
            status, content_type, chunks = await forward(engine.address, body)
        except BaseException:
            # Also when the caller left meanwhile: a crew that is held is never dismissed.
            crew.let_go()
            raise
        held = _held(crew, chunks)
        await anext(held)  # what was not begun would not be ended either
        return ChatAnswer(status, {"Content-Type": content_type}, held)

    async def turns(self, limit: int) -> list[wire.Turn]:
        """The last turns, newest first: this daemon's with their text, older ones as the journal has them."""
        recent = self._recorder.recent(limit)
        known = {(turn["session"], turn["id"]) for turn in recent}
        older = await asyncio.to_thread(read_turns, self._places.journal, limit=limit)
        rest = [turn for turn in older if (turn["session"], turn["id"]) not in known]
        return cast(list[wire.Turn], (recent + rest)[:limit])

    async def restart_engine(self, name: str) -> None:
        """Start the engine anew."""
        self._named(name)
        # Loading may take minutes; the caller watches the status.
        restarting = asyncio.create_task(self._fleet.restart(name), name=f"restart {name}")
        self._restarting.add(restarting)
        restarting.add_done_callback(self._restarted)

    def _restarted(self, task: asyncio.Task[None]) -> None:
        self._restarting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an engine could not be restarted", exc_info=error)

    async def switch(self, wanted: Mapping[str, str], keep: bool) -> wire.Switch:
        """Change the plan; returns when that is done. Goes on to its end when the caller leaves."""
        self._conversation()
        return switch_shape(await self._switching.switch(wanted, kept=keep), self.language)

    # What the switching asks.

    async def warm_up(self, crew: Crew, stages: frozenset[Stage]) -> None:
        """Let engines that do not serve yet compute what the next turn will ask first."""
        if "llm" in stages and self._session is not None and (engine := crew.engine("llm")) is not None:
            # With the conversation: what is prepared for a first question would only take its place.
            self._prepared[engine.name] = engine.pid
            await self._session.compute_ahead(self._engines.of(crew))

    def switched(self, config: Config, stages: frozenset[Stage]) -> None:
        """Other engines serve from now on, or for a while none."""
        self.config = config
        self._conditions = None
        measure = config.measure
        self._summary_before = self._summary
        self._summary = Summary(Steadiness(measure.steady_turns, measure.steady_within))
        serving = [f"engine:{engine.name}" for engine in self._fleet.status()]
        for key in [key for key in self._faults if key.startswith("engine:")]:
            if not any(key == name or key.startswith(f"{name}:") for name in serving):
                self._cleared(key)
        for session in tuple(self._conversations):
            session.engines_switched()
        if "tts" in stages and self._fleet.crew.engine("tts") and not self._fleet.crew.switching:
            self._phrases.forget()
            self._ahead(self._phrases.prepare(self.language))
        self._broadcast_state()

    def tell(self, switch: Switch) -> None:
        """The change is so far now."""
        self._broadcast.publish({"type": "switch", "switch": switch_shape(switch, self.language)})

    def _broadcast_state(self) -> None:
        name = self._session.name if self._session else ""
        self._broadcast.publish({"type": "state", "session": name, "state": self._state()})

    async def engine_log(self, name: str, lines: int) -> str:
        """The last lines of the engine's log."""
        engine = self._named(name)
        return "\n".join(await asyncio.to_thread(tail, engine.log, lines)) if engine.log else ""

    async def shutdown(self) -> None:
        """Begin to end."""
        self._end(asked=True)

    # What it keeps.

    def conditions(self) -> dict[str, Any]:
        """What every number travels with."""
        lasting = self._lasting(self.config, self._fleet.crew)
        return {
            "name": lasting.name,
            **lasting.facts,
            **at_the_moment(),
            "uptime_s": round(time.monotonic() - self._began, 1),
            "measuring_ms": {
                "loop": round(self._noting_ns / 1e6 / max(1, self._turns), 3),
                "counting": round(self._counting_ns / 1e6 / max(1, self._turns), 3),
                "writer": round(self._recorder.cpu_ns / 1e6 / max(1, self._recorder.written), 3),
            },
            "daemon_rss_mib": round(psutil.Process().memory_info().rss / 2**20, 1),
        }

    def _lasting(self, config: Config, crew: Crew) -> Conditions:
        """``config``: the conversation's. One with settings of its own has conditions of its own; a turn that
        began before a switch has those of the engines that it ended on.
        """
        own = (config.endpoint, config.drafts) != (self.config.endpoint, self.config.drafts)
        if own or crew is not self._fleet.crew:
            return Conditions.of(lasting_of(config, self.language, crew.plan, crew))
        if self._conditions is None:
            self._conditions = Conditions.of(lasting_of(self.config, self.language, crew.plan, crew))
        return self._conditions

    def _conversation(self) -> Session:
        if self._session is None:
            raise ControlError("daemon_starting")
        return self._session

    def _own_ears(self) -> Ears:
        if self._ears is None:
            raise ControlError("daemon_starting")
        return self._ears

    def _listening_ears(self) -> Ears:
        """Raises what a person needs to know before speaking: it is muted, or there is no microphone."""
        ears = self._own_ears()
        if self._conversation().mode == "muted":
            raise ControlError("listen_muted")
        if self.config.audio.microphone == "none" or "microphone" in self._faults:
            raise AudioError("no_microphone_now", name=self._conversation().microphone.name)
        return ears

    def _named(self, name: str) -> EngineStatus:
        for engine in self._fleet.status():
            if engine.name == name:
                return engine
        raise ControlError("engine_not_running_here", name=name)

    def _state(self) -> wire.State:
        if self._fleet.crew.switching and self._session and self._session.phase == "listening":
            return "switching"
        if self._session is None or any(e.state in {"starting", "loading"} for e in self._fleet.status()):
            return "starting"
        if self._session.phase == "listening" and any(self._fleet.engine(s) is None for s in STAGES):
            return "fault"
        return cast(wire.State, self._session.phase)

    def _device(self, which: str) -> wire.Device:
        spec = getattr(self.config.audio, which)
        name = getattr(self._session, which).name if self._session else spec
        if spec == "none":
            return {"name": name, "state": "none"}
        if which == "microphone" and self._ears is not None and self._ears.deaf:
            return {"name": spec, "state": "muted"}
        return {"name": name, "state": "missing" if which in self._faults else "ok"}

    def _wire_turn(self, turn: Turn) -> wire.Turn:
        return cast(wire.Turn, turn.as_json())

    def _turn_finished(self, config: Config, turn: Turn) -> None:
        began = time.thread_time_ns()
        self._note(turn, config)
        self._noting_ns += time.thread_time_ns() - began
        summary = self._summary if turn.crew == self._fleet.crew.number else self._summary_before
        self._ahead(asyncio.to_thread(self._afterwards, cast(wire.Turn, self._last_turn), summary))

    def _afterwards(self, turn: wire.Turn, summary: Summary) -> None:
        """What can wait, in a thread of its own. ``summary``: of the turns with the same engines."""
        began = time.thread_time_ns()
        self._metrics.turn(turn)
        summary.add(turn)
        self._counting_ns += time.thread_time_ns() - began
        give_back()

    def _note(self, turn: Turn, config: Config) -> None:
        turn.conditions = self._lasting(config, self._fleet.crew_of(turn.crew))
        turn.moment = at_the_moment()
        self._turns += 1
        self._last_turn = turn.as_json()
        self._recorder.record(turn, self._last_turn)

    def _engine_changed(self, change: Change) -> None:
        self._conditions = None
        engine = change.status
        self._broadcast.publish({"type": "engine", "engine": engine_shape(engine, self.language)})
        key = f"engine:{engine.name}"
        if engine.state == "ready":
            self._cleared(key)
            for fault in engine.faults:
                self._fault(f"{key}:{fault.code}", fault)
            if change.fault is not None and change.fault not in engine.faults:
                self._notice(change.fault)  # it is back
        elif change.fault is not None:
            self._fault(key, change.fault)
            for fault in engine.faults:
                if engine.fit == "refused" and fault.code.endswith(("_refused", "_refused_by_plan")):
                    # Beside "I cannot hear": why, and what to do.
                    self._fault(f"{key}:{fault.code}", fault)

        if engine.state == "ready" and self._prepared.get(engine.name) != engine.pid:
            self._prepared[engine.name] = engine.pid
            if engine.stage == "llm":
                self._ahead(self._prefill())
            elif engine.stage == "tts":
                self._ahead(self._phrases.prepare(self.language))

    def _ahead(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what the first user would otherwise wait for."""
        task = asyncio.create_task(work, name="ahead")
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def _prefill(self) -> None:
        """Let the language engine compute what stands before the first question."""
        llm = self.config.llm
        form = self.config.form.form(self.language)
        asked = prompt(llm.system_prompt(self.language), (), "", form=form)
        await prefill(asked, self._engines, llm.max_tokens, form=form)

    def _device_fault(self, which: str) -> Callable[..., None]:
        def tell(code: str | None, /, **facts: object) -> None:
            if code is None:
                self._cleared(which)
                return
            notice = code in NOTICES
            self._fault(f"{which}:notice" if notice else which, Fault(code, facts))
            if which == "microphone" and not notice and self._session is not None:
                self._session.microphone_lost()

        return tell

    def _fault(self, key: str, fault: Fault) -> None:
        self._faults[key] = (fault, datetime.now(UTC).isoformat(timespec="seconds"))
        told = fault_shape(fault, self.language, self._faults[key][1])
        log.warning("%s", told["text"])
        self._broadcast.publish({"type": "fault", "fault": told})

    def _notice(self, told: Fault) -> None:
        log.info("%s", fault_shape(told, self.language)["text"])
        name = self._session.name if self._session else ""
        self._broadcast.publish({"type": "notice", "session": name, "code": told.code})

    def _cleared(self, key: str) -> None:
        for known in [k for k in self._faults if k == key or k.startswith(f"{key}:")]:
            fault, _ = self._faults.pop(known)
            self._broadcast.publish({"type": "fault_cleared", "code": fault.code})


async def _held(crew: Crew, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same after a first that is empty; until it is closed, its engine is not taken away."""
    try:
        yield b""
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        crew.let_go()
