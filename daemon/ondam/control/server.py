"""Serves the control API on ``control.sock``. A bad client never hurts the others: all is bounded."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from ondam.control import wire
from ondam.control.access import Access, listening_socket, peer_pid, peer_uid
from ondam.control.api import Daemon
from ondam.control.body import reader
from ondam.control.calls import Calls
from ondam.control.crowd import Peer, who_goes
from ondam.control.directory import Directory
from ondam.control.failure import body_of, status_of
from ondam.control.openai import OpenAI
from ondam.control.pace import CONNECTIONS, LONGEST_WAIT_S, REQUESTS, Pace
from ondam.errors import ControlError, OndamError
from ondam.messages import Phrase

MOST_CLIENTS = 64
"""Connections at once. For one more goes one of whoever holds most of them (``crowd``); is that itself, it is
told so and closed."""

MOST_KNOCKING = 512
"""Connections that the kernel keeps until they are looked at. One more it refuses by itself; what is too much
is to be told by us."""

MOST_WAITING = 64
"""Connections that have to wait because their client opens too many; one more is told so and closed."""

IDLE_S = 30.0
"""A connection that has sent no whole request head for so long is closed, also the first time."""

SHUTDOWN_S = 0.5
"""Calls under way may end by themselves for so long when the server stops, then are cancelled."""

FAREWELL_S = 0.3
"""A subscriber that is told of the end has so long to say goodbye."""

LINGER_S = 0.2
"""A client that is still sending what was refused may do so for this long, to get to reading why."""

_LONGEST_LINE = 32 * wire.KIB
"""Of the request line: a query may carry many names."""

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)

_log = logging.getLogger(__name__)


class Server:
    """The control API of one daemon. ``group`` opens it to a group, as the system's daemon does."""

    def __init__(self, daemon: Daemon, path: Path, *, group: str | None = None) -> None:
        self._path = path
        self._group = group
        self._directory = Directory(Access(os.getuid(), group))
        self._calls = Calls(daemon, self._permit)
        self._runner = web.AppRunner(
            self._application(OpenAI(daemon, self._calls.uploads)),
            access_log=None,
            # A client that left ends its call: what it waited for is dropped, an engine's stream closed.
            handler_cancellation=True,
            keepalive_timeout=IDLE_S,
            lingering_time=LINGER_S,
            shutdown_timeout=SHUTDOWN_S,
            tcp_keepalive=False,
            max_line_size=_LONGEST_LINE,
        )
        self._arrivals = Pace(CONNECTIONS)
        self._requests = Pace(REQUESTS)
        self._waiting: set[_Doorman] = set()
        self._asking: set[asyncio.BaseProtocol] = set()
        """Connections whose request is being answered."""
        self._listening: asyncio.Server | None = None
        self._inode = 0

    async def start(self) -> None:
        """Listen. The caller holds the daemon's lock. ControlError when the place is not ours."""
        listening = listening_socket(self._path, self._group)
        self._inode = self._path.stat().st_ino
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._connection, sock=listening, backlog=MOST_KNOCKING)
        _log.info("control socket %s", self._path)

    async def stop(self) -> None:
        """End every call and subscription within about a second; the socket's file is gone afterwards."""
        if self._listening is None:
            return
        self._listening.close()
        self._listening = None
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()
        for one in tuple(self._waiting):
            one.turn_away()
        # All together, so that many that do not read cost no more than one.
        await asyncio.gather(*(_farewell(*one) for one in tuple(self._calls.subscribers.items())))
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None  # set up before anybody can connect
        return _Doorman(server, self._arrivals, self._waiting, self._make_room)

    def _make_room(self, newcomer: asyncio.Transport) -> bool:
        """Whether there is room for one more, or somebody has just made some."""
        server = self._runner.server
        assert server is not None
        inside = [
            (one, transport)
            for one in server.connections
            if (transport := one.transport) is not None and not transport.is_closing()
        ]
        if len(inside) < MOST_CLIENTS:
            return True
        present = [(_peer(transport), one not in self._asking) for one, transport in inside]
        goes = who_goes(_peer(newcomer), present)
        if goes is None:
            return False
        if present[goes][1]:
            _turn_away(inside[goes][1])
        else:
            inside[goes][1].abort()
        return True

    def _application(self, openai: OpenAI) -> web.Application:
        # The middleware answers for unknown paths too; aiohttp's own bound on bodies is the last one.
        application = web.Application(middlewares=[self._noted, _failures], client_max_size=64 * wire.MIB)
        handlers: dict[wire.Route, Handler] = {
            wire.STATUS: self._calls.status,
            wire.EVENTS: self._calls.events,
            wire.TURNS: self._calls.turns,
            wire.REPORT: self._calls.report,
            wire.SERIES: self._calls.series,
            wire.BUDGET: self._calls.budget,
            wire.METRICS: self._calls.metrics,
            wire.ASK: self._calls.ask,
            wire.SAY: self._calls.say,
            wire.LISTEN: self._calls.listen,
            wire.MODE: self._calls.mode,
            wire.PRESS: self._calls.press,
            wire.RELEASE: self._calls.release,
            wire.TOGGLE: self._calls.toggle,
            wire.STOP: self._calls.stop,
            wire.WAV_TURN: self._calls.wav_turn,
            wire.TRANSCRIBE: self._calls.transcribe,
            wire.SHUTDOWN: self._calls.shutdown,
            wire.RESTART_ENGINE: self._calls.restart_engine,
            wire.SWITCH: self._calls.switch,
            wire.ENGINE_LOG: self._calls.engine_log,
            wire.DEVICES: self._calls.devices,
            wire.CHOOSE_DEVICES: self._calls.choose_devices,
            wire.SETTINGS: self._calls.settings,
            wire.SET_SETTINGS: self._calls.set_settings,
            wire.RELOAD: self._calls.reload,
            wire.DIAGNOSTICS: self._calls.diagnostics,
            wire.CHAT: openai.chat,
            wire.MODELS: openai.models,
            wire.TRANSCRIPTIONS: openai.transcriptions,
            wire.SPEECH: openai.speech,
        }
        for route in wire.ROUTES:
            application.router.add_route(route.method, route.path, self._guarded(route, handlers[route]))
        return application

    def _guarded(
        self, route: wire.Route, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def guarded(request: web.Request) -> web.StreamResponse:
            await self._paced(request)
            await self._permit(request, route.permission)
            return await handler(request)

        return guarded

    @web.middleware
    async def _noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._asking.add(request.protocol)
        try:
            return await handler(request)
        finally:
            self._asking.discard(request.protocol)

    async def _paced(self, request: web.Request) -> None:
        """Who asks too often waits; who asks far too often is refused."""
        if request.transport is None:
            return  # gone: ``_permit`` says so
        process = peer_pid(request.transport.get_extra_info("socket"))
        wait = self._requests.wait_s(process, asyncio.get_running_loop().time())
        if wait > LONGEST_WAIT_S:
            raise ControlError("control_too_fast", most=round(REQUESTS.per_s))
        if wait:
            await asyncio.sleep(wait)

    async def _permit(self, request: web.Request, permission: wire.Permission) -> None:
        if request.transport is None:  # gone before it was asked who it is
            raise ControlError("control_bad_request", reason=Phrase("reason_connection_gone"))
        uid = peer_uid(request.transport.get_extra_info("socket"))
        # Neither needs a user database that may hang.
        allowed = uid in (0, os.getuid()) or permission in await self._directory.of(uid)
        if not allowed:
            raise ControlError("control_not_permitted", uid=uid, permission=permission)


@web.middleware
async def _failures(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every OndamError as JSON, in the form that the reader of that path expects."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        failure: OndamError = ControlError("control_too_large", limit=64 * wire.MIB)
        failure.__cause__ = error
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
        failure = ControlError("control_unknown_call", method=request.method, path=request.path)
        failure.__cause__ = error
    except OndamError as error:
        failure = error
    except (web.HTTPException, ConnectionError):
        raise  # aiohttp's own answers, and a client that left
    except Exception as error:
        # Its route, not its path: words may be in that.
        _log.exception("a call broke down: %s", _route(request))
        if getattr(request.writer, "output_size", 0) and request.transport is not None:
            request.transport.abort()  # an answer has begun: another one after it would be read as its rest
            raise web.HTTPInternalServerError from error
        failure = ControlError("internal_fault")
        failure.__cause__ = error
    described = body_of(failure, reader(request))
    status = status_of(failure)
    # What is left of a body that was refused is not read: the connection ends instead.
    headers = {"Connection": "close"} if request.body_exists and not request.content.at_eof() else None
    if not request.path.startswith("/v1/"):
        return web.json_response(described, status=status, headers=headers)
    detail = described["error"]
    kind = "invalid_request_error" if status < 500 else "server_error"
    message = " ".join(filter(None, (detail["text"], detail["next"])))
    return web.json_response(
        {"error": {"message": message, "type": kind, "param": None, **detail}},
        status=status,
        headers=headers,
    )


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return f"{request.method} {resource.canonical if resource is not None else '?'}"


async def _farewell(subscriber: web.WebSocketResponse, request: web.Request) -> None:
    try:
        async with asyncio.timeout(FAREWELL_S):
            await subscriber.close(code=1001)
    except (TimeoutError, ConnectionError):
        # It does not read, or left meanwhile: what is still to be sent to it is dropped.
        if request.transport is not None:
            request.transport.abort()


def _turn_away(transport: asyncio.WriteTransport) -> None:
    """One client too many: told in one line, then closed."""
    failure = ControlError("control_too_many_clients", limit=MOST_CLIENTS)
    described = web.json_response(body_of(failure, "en")).body
    assert isinstance(described, bytes)
    transport.write(_TOO_MANY % (len(described), described))
    transport.close()
    if transport.get_write_buffer_size():
        transport.abort()  # it does not even read what it was sent before


def _peer(transport: asyncio.BaseTransport) -> Peer:
    connection = transport.get_extra_info("socket")
    try:
        return Peer(peer_uid(connection), peer_pid(connection))
    except OSError:
        return Peer(-1, 0)  # gone already


class _Doorman(asyncio.Protocol):
    """Lets a connection in, later where its client opens too many of them."""

    def __init__(
        self,
        inside: Callable[[], asyncio.Protocol],
        arrivals: Pace,
        waiting: set[_Doorman],
        make_room: Callable[[asyncio.Transport], bool],
    ) -> None:
        self._inside = inside
        self._arrivals = arrivals
        self._waiting = waiting
        self._make_room = make_room
        self._entry: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        wait = self._arrivals.wait_s(peer_pid(transport.get_extra_info("socket")), loop.time())
        if not wait:
            self._enter(transport)
        elif wait > LONGEST_WAIT_S:
            transport.abort()
        elif len(self._waiting) >= MOST_WAITING:
            _turn_away(transport)
        else:
            transport.pause_reading()
            self._waiting.add(self)
            self._entry = loop.call_later(wait, self._enter, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.discard(self)
        if self._entry is not None:
            self._entry.cancel()

    def turn_away(self) -> None:
        """Nobody is let in any more."""
        if self._transport is not None:
            self._transport.abort()

    def _enter(self, transport: asyncio.Transport) -> None:
        self._waiting.discard(self)
        if not self._make_room(transport):
            _turn_away(transport)
            return
        inside = self._inside()
        transport.set_protocol(inside)
        inside.connection_made(transport)
        if self._entry is not None:
            transport.resume_reading()
