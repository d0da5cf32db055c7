"""The daemon as its control socket sees it: one conversation at the microphone, and others on request."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from ondam import __version__
from ondam.audio import list_devices
from ondam.audio.alive import Stuck
from ondam.audio.devices import DEFAULT, Device
from ondam.config import Config, load
from ondam.control import wire
from ondam.control.api import ChatAnswer
from ondam.control.diagnostics import LINES, diagnostics
from ondam.control.events import Broadcast
from ondam.control.series import SeriesMaker
from ondam.control.shapes import devices_shape, engine_shape, switch_shape
from ondam.errors import AudioError, ControlError, EngineError, OndamError
from ondam.house.adjusting import Adjusting
from ondam.house.faults import Faults
from ondam.house.floor import Floor
from ondam.house.lending import Lending
from ondam.house.preparing import Preparing
from ondam.house.remembering import Remembering
from ondam.house.room import Room
from ondam.house.sessions import Sessions
from ondam.house.settings import Around, refuse_others, settings
from ondam.house.sound import Sound
from ondam.house.switchboard import Switchboard
from ondam.house.switching import Planner, Switching
from ondam.house.unwritten import Unwritten
from ondam.house.voices import voice_engines, voice_models
from ondam.house.wav_turns import WavTurns
from ondam.journal.apart import report_apart
from ondam.journal.reading import Selection
from ondam.journal.recorder import Recorder, read_turns
from ondam.journal.turn import Turn
from ondam.measure.budget_answer import Wanted, answer
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_reading import own_of
from ondam.models.lookup import loaded_by
from ondam.models.store import Store
from ondam.pipeline.phrases import Phrases
from ondam.pipeline.ports import EndOfTurn, SpeechStart, Transcript, VoiceActivity
from ondam.places import Places
from ondam.speech import spoken, warm_up
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.log import tail
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.status import Change, EngineStatus
from ondam.types import Audio, Language, Mode, Samples

log = logging.getLogger(__name__)


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
        read: Callable[[], Config] | None = None,
    ) -> None:
        """``planner`` plans for this machine anew, ``config_file`` is where that is remembered.

        ``read`` is how ``config`` came about: else from ``config_file`` alone. ``voice`` makes a voice
        activity detector; ``end`` makes the daemon end.
        """
        self._places = places
        self._fleet = fleet
        self._folders = engines
        self._recorder = recorder
        self._end = end
        self._broadcast = Broadcast(followed=self._followed)
        publish = self._broadcast.publish
        self._engines = Switchboard(fleet, config, engines)
        self._lending = Lending(self._engines, fleet)
        self._faults = Faults(config.spoken_language, publish)
        self._sound = Sound(config.audio, self._faults)
        self._remembering = Remembering(config, recorder, fleet)
        self._unwritten = Unwritten(recorder, places.journal, self._faults)
        self._series = SeriesMaker(places.journal)
        phrases = Phrases(self._engines)
        self._preparing = Preparing(config, self._engines, phrases)
        sessions = Sessions(
            config,
            engines=self._engines,
            phrases=phrases,
            voice=voice,
            end_of_turn=end_of_turn,
            finished=self._turn_finished,
            publish=publish,
        )
        self._wav_turns = WavTurns(config, sessions, voice, judged=end_of_turn is not None)
        self._room = Room(
            config,
            sound=self._sound,
            sessions=sessions,
            fleet=fleet,
            publish=publish,
            broke_down=partial(end, asked=False),  # A daemon that no longer hears must not look alive.
        )
        self._floor = Floor(
            config=config,
            places=places,
            folders=engines,
            fleet=fleet,
            engines=self._engines,
            recorder=recorder,
            publish=publish,
            faults=self._faults,
            sound=self._sound,
            sessions=sessions,
            room=self._room,
            wav_turns=self._wav_turns,
            remembering=self._remembering,
            preparing=self._preparing,
        )
        able = partial(loaded_by, engines, Store(places.models))
        self._switching = Switching(fleet, config, config_file, planner, self._floor, able)
        self._read = read or partial(load, config_file)
        self._adjusting = Adjusting(self._switching, config_file, self._read, self._floor)
        self._restarting: set[asyncio.Task[None]] = set()
        fleet.subscribe(self._engine_changed)

    async def start(self) -> None:
        """Open the devices and begin to listen."""
        await asyncio.to_thread(warm_up, self.language)
        self._room.start()

    async def close(self) -> None:
        """Fall silent, let go of the devices, end every subscription."""
        try:
            await self._adjusting.close()
            await self._switching.close()
            await self._room.close()
        finally:
            await self._preparing.close()
            await self._remembering.close()
            self._broadcast.close()

    @property
    def config(self) -> Config:
        """What is in force."""
        return self._floor.config

    @property
    def language(self) -> Language:
        """What is spoken with it, unless somebody says otherwise."""
        return self._floor.language

    def stuck(self) -> Stuck | None:
        """What of the sound's way no longer moves, though nothing is known to be wrong with its devices."""
        return self._sound.stuck()

    def status(self, language: Language | None = None) -> wire.Status:
        """Everything at this moment, in ``language``, by default the daemon's."""
        language = language or self.language
        self._unwritten.look()
        fits = {engine.fit for engine in self._fleet.status()}
        last = self._switching.last
        return {
            "version": __version__,
            "pid": os.getpid(),
            "uptime_s": round(self._remembering.uptime_s, 1),
            "session": self._room.name,
            "state": self._room.state,
            "mode": self._room.mode,
            "echo": self._sound.echo,
            "language": self.language,
            "microphone": self._sound.device("microphone"),
            "speaker": self._sound.device("speaker"),
            "engines": [engine_shape(engine, language) for engine in self._fleet.status()],
            "fit": next((fit for fit in wire.WORST_FIRST if fit in fits), "unknown"),
            "faults": self._faults.shapes(language),
            "turns": self._remembering.turns,
            "last_turn": self._remembering.last_turn,
            "report": self._remembering.summary.as_json(),
            "conditions": self.conditions(),
            "switch": None if last is None else switch_shape(last, language),
        }

    def subscribe(self, *, levels: bool = False) -> AbstractAsyncContextManager[AsyncIterator[wire.Event]]:
        """A snapshot, then changes; only with ``levels`` what is fleeting."""
        if levels:
            self._room.newcomer()
        return self._broadcast.subscribe(
            lambda: {"type": "snapshot", "status": self.status()}, fleeting=levels
        )

    async def report(self, selection: Selection, language: Language) -> wire.Report:
        """What the journal's turns come to."""
        journal = self._places.journal
        if not journal.exists():  # nobody has spoken yet
            return {"turns": 0, "more": False, "skipped": 0, "groups": []}
        return cast(wire.Report, await report_apart(journal, selection, language))

    async def series(self, selection: Selection, window: str) -> wire.Series:
        """Figures over time."""
        measure = self.config.measure
        settings = measure.model_dump(include={"steady_turns", "steady_within", "budget_ms"})
        return cast(wire.Series, await self._series.series(selection, window, settings))

    async def budget(self, wanted: Wanted, language: Language) -> wire.Budget:
        """What the wait is made of."""
        measure = self.config.measure
        own = await asyncio.to_thread(own_of, self._places.journal, measure) if wanted.own else None
        return cast(wire.Budget, answer(wanted, knowledge(), own, measure.budget_ms, language))

    def metrics(self) -> bytes:
        """All turns of this daemon as Prometheus text."""
        return self._remembering.metrics.text(self.status(), self._recorder.lost, len(asyncio.all_tasks()))

    async def ask(self, text: str, speak: bool) -> wire.Turn:
        """One turn from typed text."""
        return self._wire_turn(await self._room.conversation().ask(text, aloud=speak))

    async def say(self, text: str, language: Language | None) -> wire.Said:
        """Speak ``text``; returns when it was heard."""
        named = language or self.language
        if not (await asyncio.to_thread(spoken, text, named)).clauses:
            raise ControlError("nothing_to_say")
        turn = await self._room.conversation().say(text, language)
        # A voice that answers with no sound at all fails nothing on the way; nobody has heard anything.
        if turn.outcome == "failed" or (turn.outcome == "said" and not turn.answer_s):
            raise EngineError(turn.fault or "excuse_tts")
        if turn.outcome == "unheard":
            raise AudioError("nobody_heard", name=self._room.conversation().speaker.name)
        return {"text": text, "language": named, "audio": {"seconds": round(turn.answer_s, 3)}}

    async def listen(self, timeout_s: float) -> wire.Turn:
        """Push to talk."""
        self._room.listening_ears()
        turn = await self._room.conversation().listen(timeout_s)
        if turn.outcome == "no_speech":
            raise ControlError("heard_nothing", seconds=timeout_s)
        return self._wire_turn(turn)

    async def set_mode(self, mode: wire.WantedMode) -> Mode:
        """When to listen from now on. Lasts until the daemon ends."""
        return await self._room.ears().set_mode(mode)

    async def press(self) -> None:
        """The talk button goes down."""
        self._room.listening_ears().press()

    async def release(self) -> None:
        """The talk button is let go."""
        self._room.ears().release()

    async def toggle(self) -> bool:
        """The talk button goes down, or is let go; whether it is down now."""
        ears = self._room.ears() if self._room.conversation().pressed else self._room.listening_ears()
        return ears.toggle()

    async def stop_speaking(self) -> None:
        """Fall silent."""
        self._room.conversation().stop()

    async def wav_turn(
        self, audio: Audio, language: Language | None, reset_history: bool, settings: Mapping[str, object]
    ) -> tuple[wire.Turn, Audio]:
        """One whole turn from ``audio`` in real time, in a conversation of its own on the same engines."""
        turn, said = await self._wav_turns.turn(audio, language, settings, reset_history=reset_history)
        return self._wire_turn(turn), said

    async def transcribe(self, audio: Audio, language: Language | None, names: Sequence[str]) -> Transcript:
        """The words in ``audio``."""
        names = names or self.config.stt.names
        return await self._lending.transcribe(audio, language or self.language, names)

    def synthesize(self, text: str, language: Language | None) -> AsyncGenerator[SpeechStart | Samples, None]:
        """``text`` as sound."""
        return self._lending.synthesize(text, language or self.language)

    async def chat(self, body: Mapping[str, object]) -> ChatAnswer:
        """Pass an OpenAI chat completions request to the resident language engine."""
        return await self._lending.chat(body)

    async def turns(self, limit: int) -> list[wire.Turn]:
        """The last turns, newest first: this daemon's with their text, older ones as the journal has them."""
        recent = self._recorder.recent(limit)
        known = {(turn["session"], turn["id"]) for turn in recent}
        older = await asyncio.to_thread(
            read_turns, self._places.journal, limit=limit, texts=self._places.texts
        )
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
        self._room.conversation()
        return switch_shape(await self._switching.switch(wanted, kept=keep), self.language)

    async def engine_log(self, name: str, lines: int) -> str:
        """The last lines of the engine's log."""
        engine = self._named(name)
        return "\n".join(await asyncio.to_thread(tail, engine.log, lines)) if engine.log else ""

    async def devices(self) -> wire.Devices:
        """What could be listened with and spoken through."""
        return devices_shape(await list_devices(), self.config.audio)

    async def choose_devices(self, wanted: Mapping[wire.DeviceKind, str | None], keep: bool) -> wire.Devices:
        """Use these from now on."""
        named = {f"audio.{kind}": DEFAULT if name is None else name for kind, name in wanted.items()}
        if named:
            refuse_others(named, self.config, Around(self._room.mode, await list_devices()))
            await self._adjusting.change(named, keep=keep)
        return await self.devices()

    async def settings(self, language: Language) -> wire.Settings:
        """What may be changed while it runs."""
        try:
            kept = await asyncio.to_thread(self._read)
        except OndamError:  # it is told when it is to be read; until then nothing in it counts
            kept = None
        return {"settings": settings(self.config, kept, await self._around(), language)}

    async def set_settings(
        self, wanted: Mapping[str, object], keep: bool, language: Language
    ) -> wire.Settings:
        """Change all of these or none."""
        refuse_others(wanted, self.config, await self._around())
        await self._adjusting.change(wanted, keep=keep)
        return await self.settings(language)

    async def reload(self) -> wire.Reloaded:
        """Read config.toml again."""
        done = await self._adjusting.reload()
        log.info("config.toml was read again: %d keys are otherwise", len(done.applied))
        return {"applied": list(done.applied), "needs_restart": list(done.needs_restart)}

    async def diagnostics(self, language: Language) -> wire.Diagnostics:
        """For a report of a fault."""
        logs = {"daemon": self._places.logs / "daemon.log"}
        logs |= {f"engine:{one.name}": one.log for one in self._fleet.status() if one.log is not None}
        told = {name: await asyncio.to_thread(tail, path, LINES) for name, path in logs.items()}
        return diagnostics(
            self.status(language),
            self.config,
            await self.report(Selection(), language),
            {name: "\n".join(lines) for name, lines in told.items()},
            Path.home(),
        )

    async def _around(self) -> Around:
        voice = self._engines.voice(self.language)
        folder = self._folders.get(voice or "")
        speed = folder.manifest.options.get("speed") if folder is not None else None
        voices = partial(voice_engines, self._folders, self._places, self.language)
        models = partial(voice_models, self._folders, voice or "", self._places, self.language)
        return Around(
            self._room.mode,
            await self._devices_if_any(),
            await asyncio.to_thread(voices),
            await asyncio.to_thread(models) if voice else (),
            (voice, float(speed)) if voice and isinstance(speed, int | float) else None,
        )

    async def _devices_if_any(self) -> Sequence[Device]:
        try:
            return await list_devices()
        except AudioError:  # told with the devices; other settings can be shown all the same
            return ()

    async def shutdown(self) -> None:
        """Begin to end."""
        self._end(asked=True)

    def conditions(self) -> dict[str, Any]:
        """What every number travels with."""
        return self._remembering.conditions()

    def _named(self, name: str) -> EngineStatus:
        for engine in self._fleet.status():
            if engine.name == name:
                return engine
        raise ControlError("engine_not_running_here", name=name)

    def _wire_turn(self, turn: Turn) -> wire.Turn:
        return cast(wire.Turn, turn.as_json())

    def _followed(self, anybody: bool) -> None:
        self._room.follow(anybody)

    def _turn_finished(self, own: Config | None, turn: Turn) -> None:
        """``own``: the configuration of a conversation that has one."""
        conversation = self._room.session
        turn.mode = conversation.mode if conversation and conversation.name == turn.session else "open"
        self._unwritten.look_soon()
        self._remembering.finished(turn, own)

    def _engine_changed(self, change: Change) -> None:
        self._remembering.engines_changed()
        engine = change.status
        self._broadcast.publish({"type": "engine", "engine": engine_shape(engine, self.language)})
        self._faults.engine_changed(change, self._room.name)
        self._room.engines_changed()
        if engine.state == "ready":
            self._preparing.ready(engine)
