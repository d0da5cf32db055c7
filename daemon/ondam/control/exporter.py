"""The metrics over TCP, for a Prometheus that cannot reach the socket. Only where the user wants it."""

from __future__ import annotations

import asyncio
import logging
import os

from aiohttp import web

from ondam.config import TcpPlace
from ondam.control import wire
from ondam.control.api import Daemon
from ondam.control.metrics import CONTENT_TYPE
from ondam.control.pace import LONGEST_WAIT_S, Pace, Rate
from ondam.errors import ControlError

_log = logging.getLogger(__name__)

IDLE_S = 75.0
"""A scraper asks every 15 to 60 s and keeps its connection."""

MOST_CLIENTS = 16
"""Connections at once: whoever reaches the port may open them, and each takes a descriptor of the daemon's.
One more is closed without a word."""

SCRAPES = Rate(10, 20)
"""Of all clients together; one costs about 1 ms. Who is too quick waits."""


class Exporter:
    """``GET /metrics`` at ``where``, and nothing else."""

    def __init__(self, daemon: Daemon, where: TcpPlace) -> None:
        self._daemon = daemon
        self._where = where
        application = web.Application()
        application.router.add_get(wire.METRICS.path, self._metrics)
        self._runner = web.AppRunner(application, access_log=None, keepalive_timeout=IDLE_S)
        self._scrapes = Pace(SCRAPES)
        self._listening: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. ControlError when the place is taken or is none of this machine's."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        try:
            self._listening = await loop.create_server(self._connection, *self._where)
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._where.host}:{self._where.port}"
            raise ControlError(
                "metrics_not_served", where=where, reason=os.strerror(error.errno) if error.errno else error
            ) from error
        _log.info("metrics at http://%s:%d%s", *self._where, wire.METRICS.path)

    async def stop(self) -> None:
        """Safe to call when it never listened."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None  # set up before anybody can connect
        return server() if len(server.connections) < MOST_CLIENTS else _TurnedAway()

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        wait = self._scrapes.wait_s(0, asyncio.get_running_loop().time())
        if wait > LONGEST_WAIT_S:
            raise web.HTTPTooManyRequests
        await asyncio.sleep(wait)
        return web.Response(body=self._daemon.metrics(), headers={"Content-Type": CONTENT_TYPE})


class _TurnedAway(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
