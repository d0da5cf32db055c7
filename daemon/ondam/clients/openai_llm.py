"""Text to text by an OpenAI-compatible server. Implements ``pipeline.ports.Responder``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import yarl

from ondam.clients.chat_chunk import LAST, Chunk, Overfull, chunk, overfull, server_words, together
from ondam.clients.event_stream import EventStream
from ondam.clients.json_text import Surrogates, json_object, one_line
from ondam.errors import EngineError, Foreign
from ondam.pipeline.ports import Message, Token, Usage

CONNECT_TIMEOUT_S = 5.0

AFTER_LAST_TOKEN_S = 0.25
"""How long the usage, which follows the finish reason in the same packet, is waited for. Some servers send
neither it nor ``[DONE]`` and keep the connection open."""

CHARACTERS_PER_TOKEN = 16
"""An answer longer than this many characters a token was not bounded by its server, and is cut."""

LONGEST_ERROR = 8_192
NO_STREAM = ("application/json", "text/html")
"""An error without the status of one, and the page of whoever else listens there."""

ERROR_BODY_S = 0.5
"""About so many bytes of an error's body are read, for so long at most."""

EXTRAS: Mapping[str, Any] = {
    "chat_template_kwargs": {"enable_thinking": False},
    "timings_per_token": True,
    "cache_prompt": True,
    # llama.cpp notices during a cold prefill that its client has left only while it reports progress.
    "return_progress": True,
}
"""What our engines are asked for on top of OpenAI's fields. A server that refuses them is asked without."""


class OpenAIResponder:
    """Asks the server at ``url``: ``http(s)://host:port/v1``, or ``unix:///path``, where ``/v1`` is meant.

    Of a host alone ``/v1`` is meant too.
    ``model`` may be empty where the server holds one. ``extra`` is laid over the request's body.
    ``first_token_timeout_s`` runs from the request to the first text, ``idle_timeout_s`` between two texts;
    keep-alives and reasoning are no text. ``context_tokens``: what a conversation may take there with its
    answer, 0 when nobody knows. ``tools``: definitions that go along with every request. Raises EngineError
    for a URL of another form.
    """

    def __init__(
        self,
        url: str,
        model: str = "",
        *,
        temperature: float = 0.3,
        first_token_timeout_s: float = 20.0,
        idle_timeout_s: float = 10.0,
        context_tokens: int = 0,
        tools: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.url = url
        self.context_tokens = context_tokens
        self._socket, self._base = place(url)
        self._model = model
        self._temperature = temperature
        self._first_token_timeout_s = first_token_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._tools = list(tools)
        self._extra = dict(extra or {})
        self._extras_refused = False

    async def respond(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None = None
    ) -> AsyncGenerator[Token | Usage, None]:
        """The answer as it is generated, ``Usage`` last. Closing the iterator closes the connection.

        With a ``schema`` the server is told to answer with JSON that obeys it. Raises EngineError; texts
        yielded before it stand. Codes: ``engine_unreachable``, ``llm_loading``, ``llm_context_full``,
        ``llm_refused``, ``llm_failed``, ``llm_gave_up`` (an error inside the stream), ``llm_cut_off``,
        ``llm_broken_answer``, ``llm_no_first_token``, ``llm_stalled``, ``llm_tool_call`` (the model calls a
        tool, and nobody here runs it: the answer is read no further). The facts of ``llm_context_full`` hold
        ``context_tokens`` and ``prompt_tokens``, 0 where the server did not tell.
        """
        loop = asyncio.get_running_loop()
        timeout_s, late = self._first_token_timeout_s, "llm_no_first_token"
        deadline = loop.time() + timeout_s
        left = CHARACTERS_PER_TOKEN * (max_tokens + 16)
        usage = Usage()
        surrogates = Surrogates()
        # Not one asyncio.timeout around it all: the time the consumer takes between two tokens is its own.
        body = self._body(messages, max_tokens, schema)
        async with aclosing(self._chunks(body)) as chunks:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        got = await anext(chunks)
                except StopAsyncIteration:
                    break
                except TimeoutError as error:
                    if usage.finish_reason is not None:
                        break
                    raise EngineError(late, address=self.url, seconds=f"{timeout_s:g}") from error
                except EngineError:
                    if usage.finish_reason is not None:
                        break  # the answer is whole; only the goodbye went wrong
                    raise
                if got.error is not None:
                    raise (
                        self._context_full(got.overfull, got.error)
                        if got.overfull
                        else EngineError("llm_gave_up", address=self.url, reason=got.error)
                    )
                usage = together(usage, got.usage)
                if text := surrogates.whole(got.text):
                    yield Token(text[:left], got.engine_ms)
                    left -= len(text)
                    if left <= 0:
                        usage = together(usage, Usage(finish_reason="length"))
                        break
                    timeout_s, late = self._idle_timeout_s, "llm_stalled"
                    deadline = loop.time() + timeout_s
                if got.calls:
                    raise EngineError("llm_tool_call", address=self.url, tools=Foreign(", ".join(got.calls)))
                if got.usage.finish_reason is not None:
                    deadline = loop.time() + AFTER_LAST_TOKEN_S
        yield usage

    async def _chunks(self, body: Mapping[str, Any]) -> AsyncGenerator[Chunk, None]:
        """The chunks up to ``[DONE]``, or to the end of an answer that said it was finished."""
        finished = ended = False
        stream = EventStream()
        try:
            async with self._answer(body) as response:
                while not ended:
                    more = await response.content.readany()
                    ended = not more
                    for data in stream.end() if ended else stream.feed(more):
                        if data.strip() == LAST:
                            return
                        if not data.strip():
                            continue  # how some servers keep the connection alive
                        got = chunk(data)
                        finished = finished or got.usage.finish_reason is not None
                        yield got
        except ValueError as error:
            # Half a chunk at the end of the stream is a broken connection, not a broken server.
            code = "llm_cut_off" if ended else "llm_broken_answer"
            raise EngineError(code, address=self.url, reason=one_line(str(error))) from error
        if not finished:
            raise EngineError("llm_cut_off", address=self.url, reason="the stream ended early")

    @asynccontextmanager
    async def _answer(self, body: Mapping[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response with status 200, its body not read. Faults of the connection become EngineErrors."""
        connector: aiohttp.BaseConnector = (
            aiohttp.UnixConnector(self._socket, force_close=True)
            if self._socket
            else aiohttp.TCPConnector(force_close=True)
        )
        try:
            async with aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                # "identity": a small compressed body may be a huge one.
                headers={"Accept": "text/event-stream", "Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            ) as session:
                bare = self._extras_refused
                response = await self._post(session, body, bare)
                if response.status in {400, 422} and not bare:
                    refusal = await self._refusal(response)
                    if refusal.code == "llm_context_full":
                        raise refusal
                    response = await self._post(session, body, bare=True)
                    if response.status != 200:
                        response.close()
                        raise refusal  # it was not the extras
                    self._extras_refused = True
                if response.status != 200 or response.content_type in NO_STREAM:
                    raise await self._refusal(response)
                try:
                    yield response
                finally:
                    response.close()
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(error.strerror or one_line(str(error))) from error
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(f"no answer within {CONNECT_TIMEOUT_S:g} s") from error
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
            raise EngineError("llm_broken_answer", address=self.url, reason=one_line(str(error))) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise EngineError("llm_cut_off", address=self.url, reason=one_line(str(error)) or "?") from error

    def _unreachable(self, reason: str) -> EngineError:
        return EngineError("engine_unreachable", address=self.url, reason=reason)

    def _context_full(self, told: Overfull, reason: str) -> EngineError:
        return EngineError(
            "llm_context_full",
            address=self.url,
            reason=reason,
            context_tokens=told.room,
            prompt_tokens=told.prompt,
        )

    def _body(
        self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object] | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": max_tokens,
            "temperature": self._temperature,
        }
        if self._model:
            body["model"] = self._model
        if self._tools:
            body["tools"] = self._tools
        if schema is not None:
            # llama.cpp keeps the order of the properties as it stands here, required ones first.
            format_ = {"name": "form", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": format_}
        return body

    async def _post(
        self, session: aiohttp.ClientSession, body: Mapping[str, Any], bare: bool
    ) -> aiohttp.ClientResponse:
        extras: Mapping[str, Any] = {} if bare else EXTRAS
        # No redirects: words go to the address that the user wrote, and to no other.
        return await session.post(
            f"{self._base}/chat/completions", json={**body, **extras, **self._extra}, allow_redirects=False
        )

    async def _refusal(self, response: aiohttp.ClientResponse) -> EngineError:
        body = b""
        try:
            async with asyncio.timeout(ERROR_BODY_S):
                while len(body) < LONGEST_ERROR and (more := await response.content.readany()):
                    body += more
        except (TimeoutError, aiohttp.ClientError):
            pass  # the status is what counts; the words that came so far will do
        finally:
            response.close()
        full: Overfull | None = None
        try:
            told = json_object(body)
            reason, full = server_words(told), overfull(told)
        except ValueError:
            # Not every error is JSON (a proxy's page, an empty body); its text is all there is to tell.
            reason = one_line(body.decode("utf-8", "replace")) or response.reason or "?"
        status = response.status
        if 300 <= status < 400 and (elsewhere := response.headers.get("Location")):
            reason = Foreign(f"→ {one_line(elsewhere)}: {reason}")
        if full is not None:
            return self._context_full(full, reason)
        if status == 200:
            # Asked for a stream, it answered with one JSON object: an error without the status of one.
            code = "llm_gave_up"
        else:
            code = "llm_loading" if status == 503 else "llm_failed" if status >= 500 else "llm_refused"
        return EngineError(code, address=self.url, status=status, reason=reason)


def place(url: str) -> tuple[str | None, str]:
    """The socket's path, if it is one, and the URL that the routes are appended to."""
    if url.startswith("unix:///"):
        return url.removeprefix("unix://"), "http://localhost/v1"
    try:
        parsed = yarl.URL(url)
        if parsed.scheme in {"http", "https"} and parsed.host and not (parsed.query or parsed.fragment):
            base = url.rstrip("/")
            # Of a host alone every server known has its routes below /v1; whoever watches it asks there too.
            return None, base if parsed.path.strip("/") else f"{base}/v1"
    except ValueError:
        pass  # told below, with the other malformed URLs
    raise EngineError("llm_url_malformed", address=url)
