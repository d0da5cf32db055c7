"""What becomes of everything else when engines are switched or settings change: here it is told to each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ondam.config import Config
from ondam.control import wire
from ondam.control.shapes import switch_shape
from ondam.house.faults import Faults
from ondam.house.preparing import Preparing
from ondam.house.remembering import Remembering
from ondam.house.room import Room
from ondam.house.sessions import Sessions
from ondam.house.sound import Sound
from ondam.house.switchboard import Switchboard
from ondam.house.switching import Switch
from ondam.house.wav_turns import WavTurns
from ondam.journal.keep import Keep
from ondam.journal.recorder import Recorder
from ondam.places import Places
from ondam.planner.candidates import of_stage, speaks
from ondam.speech import warm_up
from ondam.supervisor.crew import Crew
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.manifest import EngineFolder
from ondam.types import Language, Mode, Stage

PROMPTS = ("llm.system_prompt_ko", "llm.system_prompt_en", "form.instruction_ko", "form.instruction_en")
"""Keys of what stands before every question."""


@dataclass(kw_only=True, eq=False)
class Floor:
    """Implements ``switching.Floor`` and ``adjusting.Floor``."""

    config: Config
    """What everybody goes by now."""
    places: Places
    folders: Mapping[str, EngineFolder]
    fleet: Fleet
    engines: Switchboard
    recorder: Recorder
    publish: Callable[[wire.Event], None]
    faults: Faults
    sound: Sound
    sessions: Sessions
    room: Room
    wav_turns: WavTurns
    remembering: Remembering
    preparing: Preparing

    @property
    def language(self) -> Language:
        """The daemon's."""
        return self.config.spoken_language

    def take_over(self, config: Config) -> None:
        """Everything that reads the configuration has this one from now on."""
        if config is self.config:
            return
        self.config = config
        self.faults.language = self.language
        self.sound.configure(config.audio)
        self.remembering.configure(config)
        self.preparing.configure(config)
        self.engines.configure(config)
        self.sessions.configure(config)
        self.wav_turns.configure(config)
        self.room.configure(config)

    async def adjusted(self, config: Config, keys: Collection[str], mode: Mode | None) -> None:
        """``config`` is in force from now on."""
        self.take_over(config)
        self.recorder.keep = Keep.of(config, self.places)
        if "audio.speaker" in keys:
            await self.sound.use_speaker(config.audio.speaker)
        if "audio.microphone" in keys:
            await self.sound.use_microphone(config.audio.microphone)
        if mode is not None:
            await self.room.ears().set_mode(mode)
        if {"language", "form.schema", *PROMPTS}.intersection(keys) and self.fleet.engine("llm"):
            self.preparing.compute_prompt()
        if "language" in keys:
            await asyncio.to_thread(warm_up, self.language)
            self.preparing.make_phrases()
        if keys:  # a mode alone has an event of its own
            self.publish({"type": "settings", "keys": sorted(keys)})

    def stages_of(self, engine: str) -> Collection[str]:
        """Which stages the engine serves now."""
        return {one.stage for one in self.fleet.status() if one.name == engine}

    def hears(self, language: Language) -> bool:
        """Whether the recognizer that serves now knows ``language``."""
        engine = self.fleet.engine("stt")
        folder = None if engine is None else self.folders.get(engine.name)
        if engine is None or folder is None:
            return True  # one by address is taken at its word
        card = of_stage(self.folders, "stt").get(engine.model or "")
        return speaks(card.languages if card else folder.manifest.capabilities.languages, language)

    async def warm_up(self, crew: Crew, stages: frozenset[Stage]) -> None:
        """Let engines that do not serve yet compute what the next turn will ask first."""
        session = self.room.session
        if "llm" in stages and session is not None and (engine := crew.engine("llm")) is not None:
            # With the conversation: what is prepared for a first question would only take its place.
            self.preparing.is_prepared(engine)
            await session.compute_ahead(self.engines.of(crew))

    def switched(self, config: Config, stages: frozenset[Stage]) -> None:
        """Other engines serve from now on, or for a while none."""
        self.take_over(config)
        self.remembering.engines_switched()
        self.faults.only_engines([engine.name for engine in self.fleet.status()])
        self.sessions.engines_switched()
        if "tts" in stages and self.fleet.crew.engine("tts") and not self.fleet.crew.switching:
            self.preparing.another_voice()
        self.room.engines_changed()

    def tell(self, switch: Switch) -> None:
        """The change is so far now."""
        self.publish({"type": "switch", "switch": switch_shape(switch, self.language)})
