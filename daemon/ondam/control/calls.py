"""The calls under ``/api``: thin, each reads its request, asks the daemon and answers."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from aiohttp import WSMsgType, web

from ondam.control import body, sound, wire
from ondam.control.api import Daemon
from ondam.control.metrics import CONTENT_TYPE
from ondam.errors import ControlError
from ondam.types import Audio

SEND_TIMEOUT_S = 5.0
"""A subscriber whose buffer stays full for so long reads nothing any more."""

HEARTBEAT_S = 30.0
"""Pings to subscribers, so that one whose machine froze is noticed."""

UPLOADS = 4
"""Sound uploads held in memory at once; more wait for their turn."""

_log = logging.getLogger(__name__)


class Calls:
    """Handlers of the daemon's own routes. ``permit`` raises where who asks may not do a thing that not
    everybody may who may make the call."""

    def __init__(
        self, daemon: Daemon, permit: Callable[[web.Request, wire.Permission], Awaitable[None]]
    ) -> None:
        self._daemon = daemon
        self._permit = permit
        self.uploads = asyncio.Semaphore(UPLOADS)
        # Not those of the uploads: turns last as long as people speak, and nobody else must wait for them.
        self._wav_turns = asyncio.Semaphore(wire.WAV_TURNS)
        self._reports = asyncio.Semaphore(1)
        self.subscribers: dict[web.WebSocketResponse, web.Request] = {}

    async def status(self, request: web.Request) -> web.StreamResponse:
        """``wire.STATUS``."""
        told = "Accept-Language" in request.headers
        return web.json_response(self._daemon.status(body.reader(request) if told else None))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """``wire.EVENTS``. What a subscriber sends is ignored; a frame over 4 KiB closes it."""
        levels = body.switched(request.query, "levels")
        stream = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=4 * wire.KIB)
        await stream.prepare(request)
        self.subscribers[stream] = request
        try:
            async with self._daemon.subscribe(levels=levels) as events:
                sending = asyncio.create_task(self._send(request, stream, events))
                sending.add_done_callback(partial(_ended, request))
                try:
                    while (await stream.receive()).type not in (
                        WSMsgType.CLOSE,
                        WSMsgType.CLOSING,
                        WSMsgType.CLOSED,
                        WSMsgType.ERROR,
                    ):
                        pass
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        finally:
            del self.subscribers[stream]
        return stream

    async def _send(
        self, request: web.Request, stream: web.WebSocketResponse, events: AsyncIterator[wire.Event]
    ) -> None:
        try:
            async for event in events:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await stream.send_json(event)
        except (TimeoutError, ControlError, ConnectionError):
            # Too slow, or gone: a close frame would wait behind what it does not read.
            if request.transport is not None:
                request.transport.abort()
        else:
            await stream.close()

    async def turns(self, request: web.Request) -> web.StreamResponse:
        """``wire.TURNS``."""
        limit = body.whole_number(request.query, "limit", 20, 1000)
        return web.json_response({"turns": await self._daemon.turns(limit)})

    async def report(self, request: web.Request) -> web.StreamResponse:
        """``wire.REPORT``. One at a time: each reads the whole journal."""
        selection = body.selection(request.query)
        async with self._reports:
            return web.json_response(await self._daemon.report(selection, body.reader(request)))

    async def series(self, request: web.Request) -> web.StreamResponse:
        """``wire.SERIES``."""
        selection = body.selection(request.query)
        return web.json_response(await self._daemon.series(selection, request.query.get("since", "")))

    async def budget(self, request: web.Request) -> web.StreamResponse:
        """``wire.BUDGET``."""
        with body.checked_by_budget():
            asked = body.budget(request)
            return web.json_response(await self._daemon.budget(asked, body.reader(request)))

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """``wire.METRICS``."""
        return web.Response(body=self._daemon.metrics(), headers={"Content-Type": CONTENT_TYPE})

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """``wire.ASK``."""
        wanted = await body.read_table(request, wire.ASK, body.Ask)
        return web.json_response(await self._daemon.ask(wanted.text, wanted.speak))

    async def say(self, request: web.Request) -> web.StreamResponse:
        """``wire.SAY``."""
        wanted = await body.read_table(request, wire.SAY, body.Say)
        return web.json_response(await self._daemon.say(wanted.text, wanted.language))

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """``wire.LISTEN``."""
        wanted = await body.read_table(request, wire.LISTEN, body.Listen)
        return web.json_response(await self._daemon.listen(wanted.timeout_s))

    async def mode(self, request: web.Request) -> web.StreamResponse:
        """``wire.MODE``."""
        wanted = await body.read_table(request, wire.MODE, body.SetMode)
        return web.json_response({"mode": await self._daemon.set_mode(wanted.mode)})

    async def press(self, request: web.Request) -> web.StreamResponse:
        """``wire.PRESS``."""
        await self._daemon.press()
        return web.json_response({"pressed": True})

    async def release(self, request: web.Request) -> web.StreamResponse:
        """``wire.RELEASE``."""
        await self._daemon.release()
        return web.json_response({"pressed": False})

    async def toggle(self, request: web.Request) -> web.StreamResponse:
        """``wire.TOGGLE``."""
        return web.json_response({"pressed": await self._daemon.toggle()})

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """``wire.STOP``."""
        await self._daemon.stop_speaking()
        return web.json_response({})

    async def wav_turn(self, request: web.Request) -> web.StreamResponse:
        """``wire.WAV_TURN``."""
        language = body.language(request.query.get("language"))
        reset = request.query.get("reset_history", "0") not in ("0", "false", "")
        settings = body.parsed(request.query.get("settings", "").encode())
        async with self._wav_turns:
            async with self.uploads:
                audio = await self._upload(request, wire.WAV_TURN)
            with body.checked_by_config():
                turn, answer = await self._daemon.wav_turn(audio, language, reset, settings)
        wav = await asyncio.to_thread(sound.encode, answer)
        return web.json_response({"turn": turn, "answer_wav": base64.b64encode(wav).decode("ascii")})

    async def transcribe(self, request: web.Request) -> web.StreamResponse:
        """``wire.TRANSCRIBE``."""
        language = body.language(request.query.get("language"))
        names = request.query.getall("names", [])
        async with self.uploads:
            audio = await self._upload(request, wire.TRANSCRIBE)
            began = time.monotonic_ns()
            heard = await self._daemon.transcribe(audio, language, names)
            total_ms = (time.monotonic_ns() - began) / 1e6
        answer: wire.Transcription = {
            "text": heard.text,
            "language": heard.language,
            "engine": _recognizer(self._daemon.status()),
            "audio_s": round(audio.seconds, 3),
            "engine_ms": heard.engine_ms,
            "queued_ms": heard.queued_ms,
            "total_ms": round(total_ms, 1),
            "no_speech_prob": heard.no_speech_prob,
            "avg_logprob": heard.avg_logprob,
        }
        return web.json_response(answer)

    async def shutdown(self, request: web.Request) -> web.StreamResponse:
        """``wire.SHUTDOWN``."""
        await self._daemon.shutdown()
        return web.json_response({})

    async def restart_engine(self, request: web.Request) -> web.StreamResponse:
        """``wire.RESTART_ENGINE``."""
        await self._daemon.restart_engine(request.match_info["name"])
        return web.json_response({})

    async def switch(self, request: web.Request) -> web.StreamResponse:
        """``wire.SWITCH``."""
        asked = await body.read_table(request, wire.SWITCH, body.Switch)
        return web.json_response(await self._daemon.switch(asked.wanted, asked.keep))

    async def engine_log(self, request: web.Request) -> web.StreamResponse:
        """``wire.ENGINE_LOG``."""
        name = request.match_info["name"]
        lines = body.whole_number(request.query, "lines", 100, 10_000)
        return web.json_response({"name": name, "text": await self._daemon.engine_log(name, lines)})

    async def devices(self, request: web.Request) -> web.StreamResponse:
        """``wire.DEVICES``."""
        return web.json_response(await self._daemon.devices())

    async def choose_devices(self, request: web.Request) -> web.StreamResponse:
        """``wire.CHOOSE_DEVICES``."""
        asked = await body.read_table(request, wire.CHOOSE_DEVICES, body.ChooseDevices)
        if asked.keep:
            await self._permit(request, "admin")
        with body.checked_by_config():
            return web.json_response(await self._daemon.choose_devices(asked.wanted, asked.keep))

    async def settings(self, request: web.Request) -> web.StreamResponse:
        """``wire.SETTINGS``."""
        return web.json_response(await self._daemon.settings(body.reader(request)))

    async def set_settings(self, request: web.Request) -> web.StreamResponse:
        """``wire.SET_SETTINGS``."""
        asked = await body.read_table(request, wire.SET_SETTINGS, body.SetSettings)
        # What outlives this daemon, and what it keeps of what others say, is the administrator's to say.
        if asked.keep or any(key.startswith("journal.") for key in asked.wanted):
            await self._permit(request, "admin")
        with body.checked_by_config():
            done = await self._daemon.set_settings(asked.wanted, asked.keep, body.reader(request))
        return web.json_response(done)

    async def reload(self, request: web.Request) -> web.StreamResponse:
        """``wire.RELOAD``."""
        return web.json_response(await self._daemon.reload())

    async def diagnostics(self, request: web.Request) -> web.StreamResponse:
        """``wire.DIAGNOSTICS``. One at a time: each reads the whole journal."""
        async with self._reports:
            return web.json_response(await self._daemon.diagnostics(body.reader(request)))

    async def _upload(self, request: web.Request, route: wire.Route) -> Audio:
        data = await body.read(request, route)
        return await asyncio.to_thread(sound.decode, data, route.limit // 2)


def _ended(request: web.Request, sending: asyncio.Task[None]) -> None:
    """A subscriber that can be sent nothing any more must not wait for ever."""
    if not sending.cancelled() and (error := sending.exception()):
        _log.error("a subscriber was lost to an error nobody expected", exc_info=error)
        if request.transport is not None:
            request.transport.abort()


def _recognizer(status: wire.Status) -> str | None:
    return next((e["name"] for e in status["engines"] if e["stage"] == "stt" and not e["spare"]), None)
