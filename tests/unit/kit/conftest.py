"""Servers of scripted models on real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.unit.kit.models import Client, ScriptedStt, ScriptedTts

from ondam_engines.kit.jobs import Worker
from ondam_engines.kit.limits import LIMITS, Limits
from ondam_engines.kit.server import Server, Service
from ondam_engines.kit.stt import SttService
from ondam_engines.kit.tts import TtsService

Connect: TypeAlias = Callable[[], Awaitable[Client]]
Serve: TypeAlias = Callable[..., Awaitable[Connect]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """``connect = await serve(model_or_service, limits)``; everything is closed afterwards."""
    async with AsyncExitStack() as stack:
        count = 0

        async def start(model: ScriptedStt | ScriptedTts, limits: Limits = LIMITS) -> Connect:
            nonlocal count
            count += 1
            path = tmp_path / f"{count}.sock"
            service: Service = (
                SttService(model, "ko") if isinstance(model, ScriptedStt) else TtsService(model, "ko")
            )
            worker = Worker(limits)
            server = Server(path, service, worker, limits)
            await server.start()
            stack.push_async_callback(worker.close, 5.0)
            if isinstance(model, ScriptedStt):
                stack.callback(model.gate.set)
            stack.push_async_callback(server.close)

            async def connect() -> Client:
                client = await Client.to(path)
                stack.callback(client.leave)
                return client

            return connect

        yield start


@pytest.fixture
def stt() -> ScriptedStt:
    return ScriptedStt()


@pytest.fixture
def tts() -> ScriptedTts:
    return ScriptedTts()
