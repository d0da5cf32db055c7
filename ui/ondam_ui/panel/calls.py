"""What the page may ask: each call is one of the daemon's, and no other is passed on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from aiohttp import web

from ondam.control import wire
from ondam.control.client import Client, ControlError

MOST_TURNS = 200
"""That a page shows."""


def language(request: web.Request) -> str:
    """Of whoever reads: Korean where the page says so, else English."""
    asked = request.query.get("language") or request.headers.get("Accept-Language") or ""
    return "ko" if asked.lower().startswith("ko") else "en"


class Calls:
    """Handlers under ``api/``. Every one raises what the daemon raised; the server tells it in words."""

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self._clients = clients

    def routes(self, path: str) -> list[web.RouteDef]:
        """All of them, under ``path``."""
        return [
            web.get(f"{path}status", self.status),
            web.get(f"{path}turns", self.turns),
            web.get(f"{path}series", self.series),
            web.get(f"{path}report", self.report),
            web.get(f"{path}budget", self.budget),
            web.get(f"{path}devices", self.devices),
            web.get(f"{path}settings", self.settings),
            web.get(f"{path}diagnostics", self.diagnostics),
            web.get(f"{path}engines/{{name}}/log", self.engine_log),
            web.post(f"{path}engines/{{name}}/restart", self.restart_engine),
            web.post(f"{path}devices", self.choose_devices),
            web.post(f"{path}settings", self.set_settings),
            web.post(f"{path}mode", self.mode),
            web.post(f"{path}toggle", self.toggle),
            web.post(f"{path}stop", self.stop),
        ]

    def of(self, request: web.Request) -> Client:
        """A client whose answers are in the reader's language."""
        return self._clients[language(request)]

    async def status(self, request: web.Request) -> web.StreamResponse:
        """Everything at this moment."""
        return answer(await self.of(request).status())

    async def turns(self, request: web.Request) -> web.StreamResponse:
        """The last ``limit`` turns."""
        limit = request.query.get("limit", "50")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_TURNS):
            raise ControlError("panel_bad_request")
        return answer({"turns": await self.of(request).turns(int(limit))})

    async def series(self, request: web.Request) -> web.StreamResponse:
        """Figures over time."""
        return answer(await self.of(request).series(_only(request, "since", "plan")))

    async def report(self, request: web.Request) -> web.StreamResponse:
        """What turns come to."""
        return answer(await self.of(request).report(**_only(request, "since", "plan", "most")))

    async def budget(self, request: web.Request) -> web.StreamResponse:
        """What the wait is made of, as the daemon reckons it."""
        asked = [(name, value) for name, value in request.query.items() if name != "language"]
        return answer(await self.of(request).budget(asked))

    async def devices(self, request: web.Request) -> web.StreamResponse:
        """Microphones and speakers."""
        return answer(await self.of(request).devices())

    async def choose_devices(self, request: web.Request) -> web.StreamResponse:
        """Use others."""
        body = await _body(request)
        kept = body.pop("keep", False) is True
        chosen = cast(Mapping[wire.DeviceKind, str | None], body)
        return answer(await self.of(request).choose_devices(chosen, keep=kept))

    async def settings(self, request: web.Request) -> web.StreamResponse:
        """What may be changed while the daemon runs."""
        return answer(await self.of(request).settings())

    async def set_settings(self, request: web.Request) -> web.StreamResponse:
        """Change it."""
        body = await _body(request)
        wanted = body.get("set")
        if not isinstance(wanted, dict):
            raise ControlError("panel_bad_request")
        return answer(await self.of(request).set_settings(wanted, keep=body.get("keep") is True))

    async def diagnostics(self, request: web.Request) -> web.StreamResponse:
        """A file to hand on: no sound, no words."""
        made = await self.of(request).diagnostics()
        day = made["made_at"][:10]
        return web.Response(
            text=json.dumps(made, ensure_ascii=False, indent=1),
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="ondam-diagnostics-{day}.json"'},
        )

    async def engine_log(self, request: web.Request) -> web.StreamResponse:
        """The end of an engine's log."""
        name = request.match_info["name"]
        return answer({"name": name, "text": await self.of(request).engine_log(name, 200)})

    async def restart_engine(self, request: web.Request) -> web.StreamResponse:
        """Start it anew."""
        await self.of(request).restart_engine(request.match_info["name"])
        return answer({})

    async def mode(self, request: web.Request) -> web.StreamResponse:
        """Listen at other times."""
        mode = (await _body(request)).get("mode")
        if mode not in wire.WANTED_MODES:
            raise ControlError("panel_bad_request")
        return answer({"mode": await self.of(request).set_mode(mode)})

    async def toggle(self, request: web.Request) -> web.StreamResponse:
        """The talk button."""
        return answer({"pressed": await self.of(request).toggle()})

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """Fall silent."""
        await self.of(request).stop_speaking()
        return answer({})


def answer(value: object) -> web.Response:
    """As JSON."""
    return web.json_response(value)


def _only(request: web.Request, *names: str) -> dict[str, str]:
    return {name: value for name in names if (value := request.query.get(name))}


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise ControlError("panel_bad_request") from error
    if not isinstance(body, dict):
        raise ControlError("panel_bad_request")
    return body
