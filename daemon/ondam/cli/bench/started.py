"""A daemon for a run, whose prompts hold the tools of ``--prompt FILE`` as its server takes them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.bench.profile import toml
from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.cli.terminal import say
from ondam.errors import EngineError
from ondam.messages import reader_language

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.control.client import Client
    from ondam.measure.prompt import SystemPrompt, ToolsSent
    from ondam.places import Places


@dataclass(frozen=True, slots=True)
class Started:
    """It is ready. ``config``: what it answers with; ``tools_sent``: None where there are none."""

    client: Client
    config: Config
    tools_sent: ToolsSent | None


LOG_LINES = 6
"""Of an engine that did not start."""


async def refuse_failed(client: Client, side: str, profile: str) -> None:
    """Raise EngineError where an engine that is wanted failed: with the end of its log, which may be gone
    with the daemon, and which of two sides it is. A spare voice would not be the one that was wanted."""
    for engine in (await client.status())["engines"]:
        if engine["state"] != "failed" or engine["spare"]:
            continue
        told = [fault["text"] for fault in engine["faults"]]
        if not engine["outside"]:
            told += (await client.engine_log(engine["name"], LOG_LINES)).splitlines()
        facts = {"engine": engine["name"], "tail": "\n".join(told), "profile": profile or "shipped"}
        raise EngineError("bench_side_failed" if side else "bench_engine_failed", side=side, **facts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to start it with. ``settings``: key to TOML, ``--prompt`` with its field ``tools`` among them;
    ``own``: those that nothing may change. ``folder``: for files, as long as it runs."""

    here: Places
    config: Config
    settings: Mapping[str, str]
    own: Mapping[str, str]
    alone: bool
    folder: Path
    home: Path | None = None
    prompt: SystemPrompt | None = None
    waits_only: bool = False
    """The engines are stubs, which read no prompt."""

    async def start(self, running: AsyncExitStack) -> Started:
        """For as long as ``running`` lasts. A server that leaves tools out of its prompts is found out by
        asking it, and a second daemon is started, whose system prompt holds them as text."""
        attempt = AsyncExitStack()
        # Entered first, so that whatever comes is ended, however this ends.
        await running.enter_async_context(attempt)
        client = await self._client(attempt, {**self.settings, **self.own})
        tools = self.config.llm.definitions() if self.prompt and self.prompt.tools else ()
        if not tools or self.waits_only or await self._reads_tools(client):
            return Started(client, self.config, "field" if tools else None)
        await attempt.aclose()
        click.echo(say("bench_tools_as_text"), err=True)
        assert self.prompt is not None
        as_text = self.prompt.settings(self.config.spoken_language, "text", self.folder)
        settings = {**self.settings, **{key: toml(value) for key, value in as_text.items()}, **self.own}
        told: dict[str, Any] = {
            key.partition(".")[2]: value for key, value in as_text.items() if key not in self.own
        }
        config = self.config.model_copy(update={"llm": self.config.llm.model_copy(update=told)})
        return Started(await self._client(running, settings), config, "text")

    async def _client(self, running: AsyncExitStack, settings: Mapping[str, str]) -> Client:
        from ondam.control.client import Client

        await running.enter_async_context(own_daemon(self.here, settings, alone=self.alone, home=self.home))
        client = await running.enter_async_context(Client(self.here.control_socket, reader_language()))
        await until_ready(client)
        return client

    async def _reads_tools(self, client: Client) -> bool:
        from ondam.measure.raw import responder
        from ondam.measure.tools_sent import reads_tools

        status, llm = await client.status(), self.config.llm
        sent, bare = (responder(status, self.here, self.config, tools) for tools in (llm.definitions(), ()))
        return await reads_tools(sent, bare, llm.system_prompt(self.config.spoken_language))
