"""Other settings while the conversation goes on: from a tray, a panel, or from config.toml read again.

One way for all of them. A new configuration is checked as a whole; then what engines are started by is
changed as a switch of engines is, and what is left takes hold at once or with the next turn. What counts only
when the daemon starts (``keys.counts``) stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ondam.config import Config
from ondam.config.contradictions import contradictions
from ondam.config.file import keep as keep_in
from ondam.config.keys import changed, counts, flat, nested
from ondam.config.schema import check
from ondam.errors import OndamError
from ondam.house.switching import KEYS, Switching, implied
from ondam.messages import Phrase
from ondam.types import Language, Mode

T = TypeVar("T")

MODE = "listen.mode"
"""Set, it lasts until the daemon ends, as with ``ondam mode``: the configuration says how it starts."""


class Floor(Protocol):
    """The conversations that go on meanwhile, and the devices."""

    async def adjusted(self, config: Config, keys: Collection[str], mode: Mode | None) -> None:
        """``config`` is in force from now on; ``keys`` are otherwise in it. ``mode`` is to be set, if any."""

    def stages_of(self, engine: str) -> Collection[str]:
        """Which stages the engine of that name serves now."""

    def hears(self, language: Language) -> bool:
        """Whether the recognizer that serves now knows ``language``."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What came of reading the configuration again."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


@dataclass
class Adjusting:
    """One change at a time. The configuration in force is ``switching.config``."""

    switching: Switching
    config_file: Path
    read: Callable[[], Config]
    """The configuration as files and command line have it now. Blocks; raises ConfigError, MigrationError."""
    floor: Floor
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set, init=False)

    @property
    def config(self) -> Config:
        """What is in force."""
        return self.switching.config

    async def change(self, wanted: Mapping[str, Any], *, keep: bool) -> None:
        """Change all of ``wanted`` (``{"llm.max_tokens": 96}``) or nothing; goes on when the caller leaves.

        ``keep``: config.toml says so too. Raises ConfigError with every problem, ModelError and EngineError
        where another engine did not come up, ControlError ``switch_under_way``.
        """
        await self._on_its_own(self._change(dict(wanted), keep=keep))

    async def reload(self) -> Reloaded:
        """Take over what the configuration says by now; goes on when the caller leaves.

        Raises what ``read`` raises, and what ``change`` does; then nothing has changed.
        """
        return await self._on_its_own(self._reload())

    async def close(self) -> None:
        """Leave it as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _on_its_own(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work, name="other settings")
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked has been told; nobody need be there any more

    async def _change(self, wanted: dict[str, Any], *, keep: bool) -> None:
        async with self._one:
            engines = {key: str(value) for key, value in wanted.items() if key in KEYS}
            wanted = {**implied(self.config, engines, self.switching.able), **wanted}
            new = with_values(self.config, wanted)
            if keep:
                # Nothing is changed for a wish that could not be kept afterwards.
                await asyncio.to_thread(keep_in, self.config_file, {})
            mode = new.listen.mode if MODE in wanted else None
            await self._become(new if keep else taken(new, [MODE], self.config), mode)
            if keep:
                await asyncio.to_thread(keep_in, self.config_file, nested(wanted))

    async def _reload(self) -> Reloaded:
        async with self._one:
            there = await asyncio.to_thread(self.read)
            keys = changed(self.config, there)
            later = [key for key in keys if counts(key) == "restart"]
            mode = there.listen.mode if MODE in keys else None
            await self._become(taken(there, later, self.config), mode)
            return Reloaded(tuple(key for key in keys if key not in later), tuple(later))

    async def _become(self, new: Config, mode: Mode | None) -> None:
        keys = changed(self.config, new)
        of_engines = [key for key in keys if counts(key) == "engine"]
        stages = self._stages(of_engines, new)
        if stages:
            told = flat(new)
            wanted = {key: str(told.get(key, "–")) for key in of_engines}
            await self.switching.follow(wanted, partial(taken, keys=of_engines, of=new), stages)
        # Only these: another engine may have been switched to meanwhile.
        before, self.switching.config = self.config, taken(self.config, keys, new)
        try:
            await self.floor.adjusted(self.config, keys, mode)
        except OndamError:  # a sound file that is not there: better all of it as it was than half of it new
            self.switching.config = taken(self.config, keys, before)
            await self.floor.adjusted(self.config, keys, None)
            raise

    def _stages(self, keys: Collection[str], new: Config) -> set[str]:
        stages: set[str] = set()
        for key in keys:
            table, _, rest = key.partition(".")
            if table == "engines":
                stages |= set(self.floor.stages_of(rest.partition(".")[0]))
            elif key != "language":
                stages.add(table)
            elif new.spoken_language != self.config.spoken_language:
                stages.add("tts")
                if not self.floor.hears(new.spoken_language):
                    stages.add("stt")
        outside = {"stt": new.stt.address, "llm": new.llm.url, "tts": new.tts.address}
        return {stage for stage in stages if not outside[stage]}


def with_values(config: Config, wanted: Mapping[str, Any]) -> Config:
    """``config`` with ``wanted`` in it. Raises ConfigError with every problem."""
    values = config.model_dump(by_alias=True)
    for key, value in wanted.items():
        _put(values, key, value)
    return check(Config, values, Phrase("origin_settings"), contradictions=contradictions)


def taken(config: Config, keys: Collection[str], of: Config) -> Config:
    """``config``, with ``keys`` as ``of`` has them; those that it has not are left out."""
    if not keys:
        return config
    values, theirs = config.model_dump(by_alias=True), of.model_dump(by_alias=True)
    for key in keys:
        _put(values, key, _at(theirs, key))
    return check(Config, values, Phrase("origin_settings"), contradictions=contradictions)


class _Nothing:
    """There is no such key."""


NOTHING = _Nothing()


def _at(values: Mapping[str, Any], key: str) -> Any:
    inside: Any = values
    for part in key.split("."):
        if not isinstance(inside, Mapping) or part not in inside:
            return NOTHING
        inside = inside[part]
    return inside


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    *path, name = key.split(".")
    table = values
    for part in path:
        inside = table.get(part)
        if not isinstance(inside, dict):
            if value is NOTHING:
                return
            inside = table[part] = {}
        table = inside
    if value is NOTHING:
        table.pop(name, None)
    else:
        table[name] = value
