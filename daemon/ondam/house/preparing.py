"""What the first user would otherwise wait for, done as soon as there is an engine for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ondam.config import Config
from ondam.pipeline.phrases import Phrases
from ondam.pipeline.ports import Engines
from ondam.pipeline.respond import prefill, prompt
from ondam.supervisor.status import EngineStatus


class Preparing:
    """Lets a language engine compute what stands before every question, and a voice say the fixed phrases.

    Beside everything else: nobody waits for it, and what fails is done when it is wanted.
    """

    def __init__(self, config: Config, engines: Engines, phrases: Phrases) -> None:
        self._config = config
        self._engines = engines
        self._phrases = phrases
        self._prepared: dict[str, int | None] = {}
        """Engine to the process id of the one that everything was prepared with."""
        self._under_way: set[asyncio.Task[None]] = set()

    def configure(self, config: Config) -> None:
        """Other settings from now on; what they change of prompt and voice is told by itself."""
        self._config = config

    def ready(self, engine: EngineStatus) -> None:
        """It serves: prepare it, once in the life of its process."""
        if self._prepared.get(engine.name) == engine.pid:
            return
        self.is_prepared(engine)
        if engine.stage == "llm":
            self.compute_prompt()
        elif engine.stage == "tts":
            self.make_phrases()

    def is_prepared(self, engine: EngineStatus) -> None:
        """Somebody else has done, or does, what there is to do with this process."""
        self._prepared[engine.name] = engine.pid

    def compute_prompt(self) -> None:
        """Let the language engine compute what stands before the first question."""
        self._begin(self._prefill())

    def make_phrases(self) -> None:
        """Make what the daemon's language lacks in the voice that speaks now."""
        self._begin(self._phrases.prepare(self._config.spoken_language))

    def another_voice(self) -> None:
        """Under the same name another model may speak now: make them all anew."""
        self._phrases.forget()
        self.make_phrases()

    async def close(self) -> None:
        """Leave it as it is."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="ahead")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _prefill(self) -> None:
        llm, language = self._config.llm, self._config.spoken_language
        form = self._config.form.form(language)
        asked = prompt(llm.system_prompt(language), (), "", form=form)
        await prefill(asked, self._engines, llm.max_tokens, form=form)
