"""Talks to the running daemon. Used by the commands, the tray and the panel."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import aiohttp

from ondam.control import wire
from ondam.control.failure import raised_from
from ondam.errors import ControlError, OndamError
from ondam.messages import typed
from ondam.places import starting

__all__ = ["Client", "ControlError", "OndamError", "Speech", "call"]

QUICK_S = 10.0
"""A call that only looks or asks for something to begin is answered within this."""

REPORT_S = 120.0
"""A report of a long journal, on a machine that has other work."""

CONNECT_S = 5.0
"""A daemon that takes no connection for so long is stuck."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Speech:
    """Mono 16-bit little-endian samples."""

    rate_hz: int
    pcm: bytes

    @property
    def seconds(self) -> float:
        """Length."""
        return len(self.pcm) / 2 / self.rate_hz


class Client:
    """One daemon, by its socket. Use as ``async with``.

    Every call raises the OndamError that the daemon raised, or ControlError: ``daemon_not_running``,
    ``control_socket_closed_to_you``, ``daemon_gone``, ``daemon_silent``. Cancelling a call
    ends it in the daemon.
    """

    def __init__(self, path: Path, language: str = "en") -> None:
        self._path = path
        self._language = language
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection for each call: what one call leaves behind can never disturb the next.
        connector = aiohttp.UnixConnector(str(self._path), force_close=True)
        self._session = aiohttp.ClientSession(
            base_url="http://ondam", connector=connector, headers={"Accept-Language": self._language}
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def status(self) -> wire.Status:
        """Everything at this moment."""
        return cast("wire.Status", await self._json(wire.STATUS, timeout_s=QUICK_S))

    async def events(self, *, levels: bool = False) -> AsyncGenerator[wire.Event, None]:
        """A snapshot, then changes. Never ends by itself: ``daemon_gone`` when the daemon ended.

        ``levels``: also what is fleeting (``wire.FLEETING``): levels, marks of the running turn, its answer.
        """
        assert self._session is not None
        place = f"{wire.EVENTS.path}?levels={int(levels)}"
        async with self._failures(), self._session.ws_connect(place, heartbeat=60) as stream:
            async for message in stream:
                if message.type is aiohttp.WSMsgType.TEXT:
                    yield json.loads(message.data)
            raise ControlError("daemon_gone", reason=f"WebSocket {stream.close_code}")

    async def turns(self, limit: int = 20) -> list[wire.Turn]:
        """The last turns, newest first."""
        answer = await self._json(wire.TURNS, query=[("limit", str(limit))], timeout_s=QUICK_S)
        return cast("wire.Turns", answer)["turns"]

    async def report(self, **wanted: str | int | None) -> wire.Report:
        """What turns come to; ``wanted``: ``since``, ``until``, ``session``, ``plan``, ``most`` of
        ``wire.REPORT``."""
        query = [(name, str(value)) for name, value in wanted.items() if value is not None]
        return cast("wire.Report", await self._json(wire.REPORT, query=query, timeout_s=REPORT_S))

    async def series(self, wanted: Mapping[str, str] | None = None) -> wire.Series:
        """Figures over time; ``wanted``: ``since``, ``plan``, ``most`` of ``wire.SERIES``."""
        query = list((wanted or {}).items())
        return cast("wire.Series", await self._json(wire.SERIES, query=query, timeout_s=REPORT_S))

    async def budget(self, query: Sequence[tuple[str, str]] = ()) -> wire.Budget:
        """What the wait is made of; ``query`` of ``wire.BUDGET``."""
        return cast("wire.Budget", await self._json(wire.BUDGET, query=query, timeout_s=QUICK_S))

    async def ask(self, text: str, *, speak: bool = False) -> wire.Turn:
        """One turn from typed text."""
        return cast("wire.Turn", await self._json(wire.ASK, {"text": text, "speak": speak}))

    async def say(self, text: str, language: str | None = None) -> wire.Said:
        """Speak on the daemon's speaker; returns when it was heard."""
        return cast("wire.Said", await self._json(wire.SAY, {"text": text, "language": language}))

    async def listen(self, timeout_s: float = 30.0) -> wire.Turn:
        """Push to talk: the next utterance from the daemon's microphone, and its answer."""
        return cast("wire.Turn", await self._json(wire.LISTEN, {"timeout_s": timeout_s}))

    async def set_mode(self, mode: wire.WantedMode) -> wire.Mode:
        """When to listen from now on; returns the mode in force, once it is so."""
        answer = await self._json(wire.MODE, {"mode": mode}, timeout_s=QUICK_S)
        return cast("wire.Listens", answer)["mode"]

    async def press(self) -> None:
        """The talk button goes down; what is said until ``release`` is one utterance."""
        await self._json(wire.PRESS, timeout_s=QUICK_S)

    async def release(self) -> None:
        """The talk button is let go."""
        await self._json(wire.RELEASE, timeout_s=QUICK_S)

    async def toggle(self) -> bool:
        """The talk button goes down when it was up, and up when it was down; whether it is down now."""
        return cast("wire.Button", await self._json(wire.TOGGLE, timeout_s=QUICK_S))["pressed"]

    async def stop_speaking(self) -> None:
        """Fall silent."""
        await self._json(wire.STOP, timeout_s=QUICK_S)

    async def wav_turn(
        self,
        wav: bytes,
        language: str | None = None,
        *,
        reset_history: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> tuple[wire.Turn, bytes]:
        """One whole turn from a WAV file's bytes; the turn, and the answer as a WAV file's bytes.

        ``settings``: tables of config.toml for this turn alone, as ``{"endpoint": {"mode": "silence"}}``.
        """
        query = [*_language(language), ("reset_history", str(int(reset_history)))]
        if settings:
            query.append(("settings", json.dumps(settings)))
        answer = cast("wire.WavTurn", await self._json(wire.WAV_TURN, wav, query=query))
        return answer["turn"], base64.b64decode(answer["answer_wav"])

    async def transcribe(
        self, sound: bytes, language: str | None = None, names: Sequence[str] = ()
    ) -> wire.Transcription:
        """The words in a sound file's bytes."""
        query = [*_language(language), *(("names", name) for name in names)]
        return cast("wire.Transcription", await self._json(wire.TRANSCRIBE, sound, query=query))

    async def synthesize(self, text: str, language: str | None = None) -> Speech:
        """``text`` spoken by the resident voice, at the voice's own rate."""
        wanted = {"input": text, "language": language, "response_format": "wav"}
        async with self._answer(wire.SPEECH, wanted) as answer:
            wav = await answer.read()
        # Our own header of 44 bytes (control/sound.py); its rate is at 24.
        return Speech(int.from_bytes(wav[24:28], "little"), wav[44:])

    async def restart_engine(self, name: str) -> None:
        """Start an engine anew."""
        await self._json(wire.RESTART_ENGINE, name=name, timeout_s=QUICK_S)

    async def engine_log(self, name: str, lines: int = 100) -> str:
        """The last lines of an engine's log."""
        query = [("lines", str(lines))]
        answer = await self._json(wire.ENGINE_LOG, name=name, query=query, timeout_s=QUICK_S)
        return cast("wire.EngineLog", answer)["text"]

    async def switch(self, wanted: Mapping[str, str], *, keep: bool = False) -> wire.Switch:
        """Change the plan, ``{"llm.model": "qwen3-8b"}``; returns when it is over, however long it takes."""
        return cast("wire.Switch", await self._json(wire.SWITCH, {"wanted": wanted, "keep": keep}))

    async def devices(self) -> wire.Devices:
        """The microphones and speakers that could be used."""
        return cast("wire.Devices", await self._json(wire.DEVICES, timeout_s=QUICK_S))

    async def choose_devices(
        self, wanted: Mapping[wire.DeviceKind, str | None], *, keep: bool = False
    ) -> wire.Devices:
        """Use ``{"microphone": name}``, ``{"speaker": name}`` or both from now on; None: the default."""
        asked: dict[str, object] = {"keep": keep, **dict(wanted.items())}
        return cast("wire.Devices", await self._json(wire.CHOOSE_DEVICES, asked, timeout_s=QUICK_S))

    async def settings(self) -> wire.Settings:
        """What may be changed while the daemon runs."""
        return cast("wire.Settings", await self._json(wire.SETTINGS, timeout_s=QUICK_S))

    async def set_settings(self, wanted: Mapping[str, object], *, keep: bool = False) -> wire.Settings:
        """Change ``{key: value}``, all or none; returns when it is so, which may take a voice's loading."""
        asked = {"set": dict(wanted), "keep": keep}
        return cast("wire.Settings", await self._json(wire.SET_SETTINGS, asked))

    async def reload(self) -> wire.Reloaded:
        """Read config.toml again."""
        return cast("wire.Reloaded", await self._json(wire.RELOAD))

    async def diagnostics(self) -> wire.Diagnostics:
        """For a report of a fault: no sound, no words, no secrets."""
        return cast("wire.Diagnostics", await self._json(wire.DIAGNOSTICS, timeout_s=REPORT_S))

    async def shutdown(self) -> None:
        """Ask the daemon to end; returns when it has begun to."""
        await self._json(wire.SHUTDOWN, timeout_s=QUICK_S)

    async def _json(
        self,
        route: wire.Route,
        body: Mapping[str, object] | bytes | None = None,
        *,
        name: str = "",
        query: Sequence[tuple[str, str]] = (),
        timeout_s: float | None = None,
    ) -> Any:
        """Any: JSON; each caller says which shape of ``wire`` it is."""
        async with self._answer(route, body, name=name, query=query, timeout_s=timeout_s) as answer:
            return await answer.json()

    @asynccontextmanager
    async def _answer(
        self,
        route: wire.Route,
        body: Mapping[str, object] | bytes | None = None,
        *,
        name: str = "",
        query: Sequence[tuple[str, str]] = (),
        timeout_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        async with (
            self._failures(timeout_s),
            self._session.request(
                route.method,
                route.path.format(name=name),
                params=query,
                # A file, not bytes: aiohttp would hold up the loop to send a large body at once.
                data=io.BytesIO(body) if isinstance(body, bytes) else None,
                json=body if isinstance(body, Mapping) else None,
                timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S),
            ) as answer,
        ):
            if answer.status >= 400:
                described = await answer.json() if answer.content_type == "application/json" else None
                raise raised_from(answer.status, described)
            yield answer

    @asynccontextmanager
    async def _failures(self, timeout_s: float | None = None) -> AsyncIterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise ControlError("daemon_silent", seconds=timeout_s or CONNECT_S) from error
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, PermissionError):
                raise ControlError("control_socket_closed_to_you", path=self._path) from error
            command = typed(starting(self._path))
            raise ControlError("daemon_not_running", path=self._path, command=command) from error
        except aiohttp.WSServerHandshakeError as error:
            raise ControlError("daemon_failed", status=error.status) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ControlError("daemon_gone", reason=str(error) or type(error).__name__) from error


def call(path: Path, work: Callable[[Client], Awaitable[T]], language: str = "en") -> T:
    """``work`` with a client, from code that is not asynchronous. Ctrl-C ends the call in the daemon too."""

    async def whole() -> T:
        async with Client(path, language) as client:
            return await work(client)

    return asyncio.run(whole())


def _language(language: str | None) -> list[tuple[str, str]]:
    return [("language", language)] if language else []
