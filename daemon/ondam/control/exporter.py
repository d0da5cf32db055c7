"""The metrics over TCP, for a Prometheus that cannot reach the socket. Only where the user wants it."""

from __future__ import annotations

import logging
import os

from aiohttp import web

from ondam.config import TcpPlace
from ondam.control import wire
from ondam.control.api import Daemon
from ondam.control.metrics import CONTENT_TYPE
from ondam.errors import ControlError

_log = logging.getLogger(__name__)

IDLE_S = 75.0
"""A scraper asks every 15 to 60 s and keeps its connection."""


class Exporter:
    """``GET /metrics`` at ``where``, and nothing else."""

    def __init__(self, daemon: Daemon, where: TcpPlace) -> None:
        self._daemon = daemon
        self._where = where
        application = web.Application()
        application.router.add_get(wire.METRICS.path, self._metrics)
        self._runner = web.AppRunner(application, access_log=None, keepalive_timeout=IDLE_S)

    async def start(self) -> None:
        """Listen. ControlError when the place is taken or is none of this machine's."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, *self._where).start()
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._where.host}:{self._where.port}"
            raise ControlError(
                "metrics_not_served", where=where, reason=os.strerror(error.errno) if error.errno else error
            ) from error
        _log.info("metrics at http://%s:%d%s", *self._where, wire.METRICS.path)

    async def stop(self) -> None:
        """Safe to call when it never listened."""
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._daemon.metrics(), headers={"Content-Type": CONTENT_TYPE})
