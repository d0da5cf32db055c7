"""The calls under ``/v1``: OpenAI's routes on the resident engines, so that no tool loads a model twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from aiohttp import BodyPartReader, web

from ondam.audio.resample import Resampler
from ondam.control import body, sound, wire
from ondam.control.api import Daemon
from ondam.errors import ControlError, OndamError
from ondam.messages import Phrase
from ondam.pipeline.ports import SpeechStart
from ondam.types import Samples

OPENAI_PCM_HZ = 24_000
"""What ``response_format: pcm`` means: platform.openai.com/docs/api-reference/audio/createSpeech."""

WRITE_TIMEOUT_S = 30.0
"""A reader that takes nothing for so long is gone. A player in real time always takes some."""

_FIELD_LIMIT = 64 * wire.KIB


class OpenAI:
    """Handlers of OpenAI's routes. ``uploads`` bounds how many sounds are held in memory at once."""

    def __init__(self, daemon: Daemon, uploads: asyncio.Semaphore) -> None:
        self._daemon = daemon
        self._uploads = uploads

    async def models(self, request: web.Request) -> web.StreamResponse:
        """``wire.MODELS``."""
        models = [
            {"id": e["model"], "object": "model", "created": 0, "owned_by": "ondam", "stage": e["stage"]}
            for e in self._daemon.status()["engines"]
            if e["model"]
        ]
        return web.json_response({"object": "list", "data": models})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """``wire.CHAT``."""
        answer = await self._daemon.chat(await body.read_object(request, wire.CHAT))
        kept = {name: value for name, value in answer.headers.items() if name.lower() == "content-type"}
        async with aclosing(answer.chunks) as chunks:
            return await _stream(request, chunks, answer.status, kept)

    async def transcriptions(self, request: web.Request) -> web.StreamResponse:
        """``wire.TRANSCRIPTIONS``."""
        async with self._uploads:
            data, fields = await _form(request)
            wanted = fields.get("response_format", "json")
            if wanted not in ("json", "text", "verbose_json"):
                raise _refused("response_format", "json | text | verbose_json", wanted)
            if fields.get("stream", "false").lower() == "true":
                raise _refused("stream", "false", "true")
            language = body.language(fields.get("language"))
            names = [name.strip() for name in fields.get("prompt", "").split(",") if name.strip()]
            audio = await asyncio.to_thread(sound.decode, data, wire.TRANSCRIPTIONS.limit // 2)
            heard = await self._daemon.transcribe(audio, language, names)
        if wanted == "text":
            return web.Response(text=heard.text + "\n")
        if wanted == "json":
            return web.json_response({"text": heard.text})
        return web.json_response(
            {
                "task": "transcribe",
                "language": heard.language or language or self._daemon.status()["language"],
                "duration": round(audio.seconds, 3),
                "text": heard.text,
                "segments": [],
            }
        )

    async def speech(self, request: web.Request) -> web.StreamResponse:
        """``wire.SPEECH``."""
        wanted = await body.read_table(request, wire.SPEECH, body.Speech)
        if wanted.response_format not in ("wav", "pcm"):
            raise _refused("response_format", "wav | pcm", wanted.response_format)
        if wanted.stream_format != "audio":
            raise _refused("stream_format", "audio", wanted.stream_format)
        # OpenAI's voices mean nothing here; a voice called "ko" or "en" chooses the language.
        named = wanted.voice if wanted.voice in ("ko", "en") else None
        async with aclosing(self._daemon.synthesize(wanted.input, wanted.language or named)) as pieces:
            start = await anext(pieces, None)
            if not isinstance(start, SpeechStart):
                raise ControlError("control_bad_request", reason=Phrase("reason_nothing_to_say"))
            if wanted.response_format == "wav":
                header, rate_hz, kind = sound.open_header(start.rate_hz), start.rate_hz, "audio/wav"
            else:
                header, rate_hz, kind = b"", OPENAI_PCM_HZ, f"audio/pcm; rate={OPENAI_PCM_HZ}; channels=1"
            chunks = _at_rate(header, pieces, start.rate_hz, rate_hz)
            async with aclosing(chunks):
                return await _stream(request, chunks, 200, {"Content-Type": kind})


async def _stream(
    request: web.Request, chunks: AsyncIterator[bytes], status: int, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Each chunk leaves when it comes. A failure after the first breaks the connection off."""
    first = await anext(chunks, b"")  # whatever fails before it is still an answer with a status
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S) as patience:
            await response.write(first)
            async for chunk in _patiently(chunks, patience):
                await response.write(chunk)
            await response.write_eof()
    except (OndamError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response


async def _patiently(chunks: AsyncIterator[bytes], patience: asyncio.Timeout) -> AsyncIterator[bytes]:
    """``chunks``; the time that the engine takes is the engine's, only that of the reader counts."""
    loop = asyncio.get_running_loop()
    while True:
        patience.reschedule(None)
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        finally:
            patience.reschedule(loop.time() + WRITE_TIMEOUT_S)
        yield chunk


async def _at_rate(
    header: bytes, pieces: AsyncIterator[SpeechStart | Samples], rate_hz: int, wanted_hz: int
) -> AsyncGenerator[bytes, None]:
    """Samples as bytes at ``wanted_hz``; a later start (a spare voice took over) may change the rate."""
    resampler = Resampler(rate_hz, wanted_hz)
    if header:
        yield header
    async for piece in pieces:
        if isinstance(piece, SpeechStart):
            if piece.rate_hz != resampler.rate_in_hz:
                yield sound.pcm(resampler.finish())
                resampler = Resampler(piece.rate_hz, wanted_hz)
        elif len(ready := resampler.process(piece)):
            yield sound.pcm(ready)
    if len(rest := resampler.finish()):
        yield sound.pcm(rest)


async def _form(request: web.Request) -> tuple[bytes, dict[str, str]]:
    """The file and the other fields of a multipart form, within the route's bounds."""
    if request.content_type != "multipart/form-data":
        raise ControlError("control_bad_request", reason=Phrase("reason_multipart"))
    data, fields = b"", dict[str, str]()
    try:
        async with asyncio.timeout(body.BODY_TIMEOUT_S):
            form = await request.multipart()
            while (part := await form.next()) is not None:
                if not isinstance(part, BodyPartReader) or len(fields) > 32:
                    raise ControlError("control_bad_request", reason=Phrase("reason_form_deep"))
                is_file = part.name == "file"
                value = await _part(part, wire.TRANSCRIPTIONS.limit if is_file else _FIELD_LIMIT)
                if is_file:
                    data = value
                else:
                    fields[part.name or ""] = value.decode("utf-8")
    except TimeoutError as error:
        raise ControlError("control_body_too_slow", seconds=body.BODY_TIMEOUT_S) from error
    except ValueError as error:  # a broken boundary, a field that is no UTF-8
        raise ControlError("control_bad_request", reason=Phrase("reason_form_broken", error=error)) from error
    if not data:
        raise ControlError("control_bad_request", reason=Phrase("reason_file_missing"))
    return data, fields


async def _part(part: BodyPartReader, limit: int) -> bytes:
    whole = bytearray()
    while chunk := await part.read_chunk(1 << 16):
        whole += chunk
        if len(whole) > limit:
            raise ControlError("control_too_large", limit=limit)
    return bytes(whole)


def _refused(field: str, wanted: str, found: object) -> ControlError:
    reason = Phrase("reason_wanted", field=field, wanted=wanted, found=repr(found))
    return ControlError("control_bad_request", reason=reason)
