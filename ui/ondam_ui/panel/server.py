"""Serves the page on 127.0.0.1 until it is asked to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from ondam.control.client import Client, ControlError, OndamError
from ondam.messages import catalog
from ondam_ui.panel.calls import Calls, answer, language
from ondam_ui.panel.door import HEADERS, Door, our_host, our_page
from ondam_ui.panel.relay import described, relay

HOST = "127.0.0.1"

LARGEST_BODY = 32 * 1024
"""Of a request: settings are a few hundred bytes."""

ENDS_WITHIN_S = 2.0
"""Calls under way may end by themselves for so long."""

PAGE = Path(__file__).parent / "page"

STATUSES: Mapping[str, int] = {
    "panel_no_token": 401,
    "panel_elsewhere": 403,
    "panel_nothing_here": 404,
    "control_not_permitted": 403,
    "control_socket_closed_to_you": 403,
    "control_directory_silent": 503,
    "daemon_not_running": 503,
    "daemon_gone": 503,
    "daemon_silent": 504,
    "daemon_failed": 502,
}
"""HTTP statuses of errors; any other is the request's fault."""


class Panel:
    """One panel of one daemon, by its control socket."""

    def __init__(self, control_socket: Path) -> None:
        self.door = Door()
        self.port = 0
        self._control_socket = control_socket
        self._open: set[web.WebSocketResponse] = set()
        self._clients: dict[str, Client] = {}
        self._cookie = ""

    async def run(self, port: int, ready: Callable[[str], None], ended: asyncio.Event) -> None:
        """Serve until ``ended``; ``ready`` is given the address. ControlError ``panel_port_taken``."""
        async with AsyncExitStack() as stack:
            for spoken in ("en", "ko"):
                client = Client(self._control_socket, spoken)
                self._clients[spoken] = await stack.enter_async_context(client)
            runner = web.AppRunner(
                self._application(),
                access_log=None,
                handler_cancellation=True,
                shutdown_timeout=ENDS_WITHIN_S,
            )
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            try:
                site = web.TCPSite(runner, HOST, port)
                await site.start()
            except OSError as error:
                raise ControlError("panel_port_taken", port=port, reason=error.strerror) from error
            self.port = runner.addresses[0][1]
            # Two panels on one machine: cookies do not know of ports.
            self._cookie = f"ondam-panel-{self.port}"
            ready(self.door.address(self.port))
            await ended.wait()
            for stream in tuple(self._open):
                await stream.close(code=1001)

    def _application(self) -> web.Application:
        here = self.door.path
        application = web.Application(middlewares=[self._guard], client_max_size=LARGEST_BODY)
        application.on_response_prepare.append(_protect)
        application.add_routes(
            [
                web.get(here, self._index),
                web.post(f"{here}session", self._enter),
                web.get(f"{here}texts", self._texts),
                web.get(f"{here}api/events", self._events),
                *Calls(self._clients).routes(f"{here}api/"),
                web.static(f"{here}page", PAGE),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._admit(request)
            return await handler(request)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
            error: OndamError = ControlError("panel_nothing_here")
        except (web.HTTPForbidden, web.HTTPRequestEntityTooLarge):
            error = ControlError("panel_bad_request")
        except OndamError as raised:
            error = raised
        told = described(error, language(request))
        return web.json_response({"error": told}, status=STATUSES.get(error.code, 400))

    def _admit(self, request: web.Request) -> None:
        """Raises ControlError: before a handler sees any of it."""
        changes = request.method != "GET" or "Upgrade" in request.headers
        navigates = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.path == self.door.path
        if not our_host(request.headers.get("Host", "")):
            raise ControlError("panel_elsewhere")
        # The page itself holds nothing; a link to it may stand anywhere.
        if not navigates and not our_page(request.headers, changes=changes):
            raise ControlError("panel_elsewhere")
        behind = request.path.startswith(f"{self.door.path}api/")
        if behind and not self.door.knows(request.cookies.get(self._cookie)):
            raise ControlError("panel_no_token")

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html")

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        """The token for a cookie; without one, whether the cookie is still good."""
        token = (await request.read()).decode("utf-8", "replace")
        if not (self.door.opens(token) or (not token and self.door.knows(request.cookies.get(self._cookie)))):
            raise ControlError("panel_no_token")
        entered = answer({})
        entered.set_cookie(
            self._cookie, self.door.session, path=self.door.path, httponly=True, samesite="Strict"
        )
        return entered

    async def _texts(self, request: web.Request) -> web.StreamResponse:
        """Every text that there is, in the reader's language."""
        spoken = language(request)
        return answer({code: entry[spoken] for code, entry in catalog().items()})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        stream = web.WebSocketResponse(heartbeat=30, max_msg_size=1024)
        await stream.prepare(request)
        self._open.add(stream)
        try:
            levels = request.query.get("levels") == "1"
            spoken = language(request)
            await relay(self._clients[spoken], stream, spoken, levels=levels)
        finally:
            self._open.discard(stream)
        return stream


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-cache" if "/page/" in request.path else "no-store")


async def serve(
    control_socket: Path, port: int, ready: Callable[[str], None], *, until_stdin_ends: bool = False
) -> None:
    """A panel until SIGTERM or Ctrl-C. ``until_stdin_ends``: whoever holds the other end is gone, however."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if until_stdin_ends:  # nobody writes to it: to be readable is to be at its end
        loop.add_reader(sys.stdin, _over, loop, ended)
    await Panel(control_socket).run(port, ready, ended)


def _over(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    loop.remove_reader(sys.stdin)
    ended.set()
