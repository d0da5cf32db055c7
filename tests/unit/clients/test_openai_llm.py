from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.clients.scripted import (
    CHUNKED,
    DONE,
    END_OF_BODY,
    SSE,
    Connection,
    Script,
    Serve,
    framed,
    said,
)

from ondam.clients.openai_llm import AFTER_LAST_TOKEN_S, OpenAIResponder, place
from ondam.errors import EngineError
from ondam.pipeline.ports import Message, Token, Usage

QUESTION: list[Message] = [{"role": "user", "content": "안녕"}]
ANSWER = "무엇을 도와드릴까요? 🙂"


@dataclass
class Heard:
    texts: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    usage: Usage | None = None
    error: EngineError | None = None
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def code(self) -> str | None:
        return self.error.code if self.error else None


async def ask(responder: OpenAIResponder, max_tokens: int = 50) -> Heard:
    heard = Heard()
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with aclosing(responder.respond(QUESTION, max_tokens=max_tokens)) as answer:
            async for piece in answer:
                assert heard.usage is None, "usage comes last"
                if isinstance(piece, Token):
                    heard.tokens.append(piece)
                    heard.texts.append(piece.text)
                else:
                    heard.usage = piece
    except EngineError as failure:
        assert failure.message("ko").text
        assert failure.message("en").text
        heard.error = failure
    heard.seconds = loop.time() - began
    return heard


def answering(*packets: bytes, stay: bool = False) -> Script:
    """Raw bytes after the request; then closes, or stays until the client leaves."""

    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(*packets)
        if stay:
            await connection.left()

    return script


def whole(*events: bytes) -> Script:
    return answering(CHUNKED, *(framed(event) for event in events), END_OF_BODY, stay=True)


async def test_the_answer_comes_token_by_token_and_usage_last(serve: Serve) -> None:
    timings = {"prompt_ms": 60.5, "prompt_n": 10, "cache_n": 30}
    server = await serve(
        whole(
            said(""),
            said("안녕", timings=timings | {"predicted_ms": 1.5, "predicted_n": 1}),
            said("하세요", timings=timings | {"predicted_ms": 14.0, "predicted_n": 2}),
            said(None, "stop", timings=timings | {"predicted_ms": 14.0, "predicted_n": 2}),
            b'data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":3,'
            b'"prompt_tokens_details":{"cached_tokens":30}}}\n\n',
            DONE,
        )
    )
    heard = await ask(OpenAIResponder(server.address))
    assert heard.tokens == [Token("안녕", 62.0), Token("하세요", 74.5)]
    assert heard.usage == Usage(40, 30, 3, 60.5, 14.0, "stop")
    assert heard.error is None
    await asyncio.sleep(0.01)
    assert server.open == 0


async def test_what_llama_cpp_counts_fills_in_where_usage_is_missing(serve: Serve) -> None:
    timings = {"prompt_ms": 1, "predicted_ms": 2, "prompt_n": 3, "cache_n": 4, "predicted_n": 5}
    server = await serve(whole(said("네", "stop", timings=timings), DONE))
    assert (await ask(OpenAIResponder(server.address))).usage == Usage(7, 4, 5, 1.0, 2.0, "stop")


async def test_the_request_asks_for_a_stream_without_thinking(serve: Serve) -> None:
    asked: list[dict[str, Any]] = []

    async def script(connection: Connection) -> None:
        asked.append(await connection.http_request())
        await connection.send(CHUNKED, framed(said("네", "stop")), framed(DONE), END_OF_BODY)

    server = await serve(script)
    await ask(OpenAIResponder(server.address, "smol", temperature=0.5, extra={"seed": 7}))
    assert asked == [
        {
            "messages": QUESTION,
            "model": "smol",
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 50,
            "temperature": 0.5,
            "chat_template_kwargs": {"enable_thinking": False},
            "timings_per_token": True,
            "cache_prompt": True,
            "return_progress": True,
            "seed": 7,
        }
    ]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
async def test_b10_a_body_cut_at_any_byte_gives_the_same_text(serve: Serve, line_end: bytes) -> None:
    body = (
        b": hello\n\n"
        + said(ANSWER).replace(b"data: ", b"data:")
        + b": ping\n\nid: 3\n"
        + said(None, "stop")
        + DONE
    )
    body = body.replace(b"\n", line_end)
    first, last = body.index("무".encode()), body.index(b"ping")
    cuts = iter(range(first, last))

    async def script(connection: Connection) -> None:
        await connection.http_request()
        at = next(cuts)
        await connection.send(CHUNKED, framed(body[:at]), framed(body[at:]), END_OF_BODY)

    server = await serve(script)
    responder = OpenAIResponder(server.address)
    heard = [await ask(responder) for _ in range(first, last)]
    assert {(h.text, h.code) for h in heard} == {(ANSWER, None)}


async def test_b10_the_last_event_needs_no_blank_line(serve: Serve) -> None:
    server = await serve(whole(said("네"), said("요", "stop").rstrip()))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("네요", None)


async def test_b10_a_character_that_the_server_cut_in_two_is_whole(serve: Serve) -> None:
    halves = [json.dumps({"choices": [{"delta": {"content": half}}]}) for half in ("네 \ud83d", "\ude42")]
    server = await serve(whole(*(f"data: {half}\n\n".encode() for half in halves), said(None, "stop")))
    assert (await ask(OpenAIResponder(server.address))).texts == ["네 ", "🙂"]


async def test_b25_nobody_listening(serve: Serve) -> None:
    for url in ("unix:///nowhere/x.sock", "http://127.0.0.1:1/v1"):
        heard = await ask(OpenAIResponder(url))
        assert heard.code == "engine_unreachable"
        assert heard.seconds < 1


async def test_b25_accepts_and_never_writes(serve: Serve) -> None:
    server = await serve(answering(stay=True))
    heard = await ask(OpenAIResponder(server.address, first_token_timeout_s=20))
    assert heard.code == "llm_no_first_token"
    assert heard.seconds == pytest.approx(20)
    await asyncio.sleep(0.01)
    assert server.open == 0


async def test_b25_accepts_and_never_reads(serve: Serve) -> None:
    forever = asyncio.Event()
    server = await serve(lambda connection: forever.wait())
    heard = await ask(OpenAIResponder(server.address, first_token_timeout_s=20))
    assert heard.code == "llm_no_first_token"
    assert heard.seconds == pytest.approx(20)


@pytest.mark.parametrize(
    "alive",
    [
        b": keep-alive\n\n",
        b"data: \n\n",
        said(""),
        said(None),
        b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n',
    ],
)
async def test_b25_only_signs_of_life_are_no_token(serve: Serve, alive: bytes) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED)
        while True:
            await connection.send(framed(alive))
            await asyncio.sleep(0.7)

    server = await serve(script)
    heard = await ask(OpenAIResponder(server.address, first_token_timeout_s=20))
    assert heard.code == "llm_no_first_token"
    assert heard.seconds == pytest.approx(20)


async def test_b25_a_stall_after_the_first_token_keeps_what_was_said(serve: Serve) -> None:
    server = await serve(answering(CHUNKED, framed(said("네, ")), stay=True))
    heard = await ask(OpenAIResponder(server.address, first_token_timeout_s=20, idle_timeout_s=10))
    assert (heard.text, heard.code) == ("네, ", "llm_stalled")
    assert heard.seconds == pytest.approx(10)


@pytest.mark.parametrize(
    "error", [b'{"error":{"message":"out of\\nmemory","code":500}}', b'{"error":"out of memory"}']
)
async def test_b25_an_error_inside_the_stream(serve: Serve, error: bytes) -> None:
    server = await serve(answering(CHUNKED, framed(said("네")), framed(b"data: %s\n\n" % error), stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("네", "llm_gave_up")
    assert "out of memory" in str(heard.error)


async def test_b25_a_finish_reason_ends_the_answer_though_the_socket_stays_open(serve: Serve) -> None:
    server = await serve(answering(CHUNKED, framed(said("네.", "stop")), stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code, heard.usage) == ("네.", None, Usage(finish_reason="stop"))
    assert heard.seconds == pytest.approx(AFTER_LAST_TOKEN_S)


async def test_done_without_a_finish_reason_is_an_end_too(serve: Serve) -> None:
    server = await serve(answering(CHUNKED, framed(said("네.")), framed(DONE), stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code, heard.usage, heard.seconds) == ("네.", None, Usage(), 0)


async def test_an_answer_that_is_whole_stays_whole_when_the_goodbye_fails(serve: Serve) -> None:
    for goodbye in (b"xyz", framed(b"data: {\n\n")):
        server = await serve(answering(CHUNKED, framed(said("네.", "stop")), goodbye))
        heard = await ask(OpenAIResponder(server.address))
        assert (heard.text, heard.code, heard.usage) == ("네.", None, Usage(finish_reason="stop"))


async def test_b25_reset_in_the_middle_of_a_sentence(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED, framed(said("오늘 ")), framed(said("날씨")))
        await asyncio.sleep(0.1)
        connection.reset()

    server = await serve(script, scheme="http")
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("오늘 날씨", "llm_cut_off")


@pytest.mark.parametrize(
    "packets",
    [
        (CHUNKED, framed(said("네"))),
        (CHUNKED, framed(said("네")), END_OF_BODY),
        (CHUNKED, framed(said("네") + b'data: {"choi'), END_OF_BODY),
        (CHUNKED, framed(said("네") + said("요")[:-9])),
        (SSE + b"\r\n", said("네")),
    ],
)
async def test_an_end_of_stream_is_no_end_of_answer(serve: Serve, packets: tuple[bytes, ...]) -> None:
    server = await serve(answering(*packets))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("네", "llm_cut_off")


async def test_a_server_that_hangs_up_before_it_answers(serve: Serve) -> None:
    for packets in ((), (b"HTTP/1.1 200",), (SSE,)):
        server = await serve(answering(*packets))
        assert (await ask(OpenAIResponder(server.address))).code in {"llm_cut_off", "llm_broken_answer"}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (b"500 Internal Server Error", "llm_failed"),
        (b"502 Bad Gateway", "llm_failed"),
        (b"503 Service Unavailable", "llm_loading"),
        (b"404 Not Found", "llm_refused"),
        (b"302 Found\r\nLocation: http://127.0.0.1:1/v1", "llm_refused"),
    ],
)
async def test_b25_a_status_that_is_no_success(serve: Serve, status: bytes, code: str) -> None:
    body = b'{"error":{"code":1,"message":"Loading model"}}'
    head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    server = await serve(answering(head, body, stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code == code
    assert "Loading model" in str(heard.error)
    assert server.accepted == 1


async def test_the_body_of_an_error_is_not_waited_for(serve: Serve) -> None:
    server = await serve(answering(b"HTTP/1.1 500 Oops\r\n\r\n", b"<h1>Ouch</h1>", stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code == "llm_failed"
    assert heard.seconds == pytest.approx(0.5)
    assert "<h1>Ouch</h1>" in str(heard.error)


async def test_b28_an_error_without_end_is_not_read_to_its_end(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(b"HTTP/1.1 500 Oops\r\n\r\n")
        while True:
            await connection.send(b"x" * 4096)

    heard = await ask(OpenAIResponder((await serve(script)).address))
    assert (heard.code, heard.seconds) == ("llm_failed", 0)
    assert len(str(heard.error)) < 500


async def test_an_error_that_calls_itself_a_success(serve: Serve) -> None:
    body = b'{"error":"no such model"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    server = await serve(answering(head, body, stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code == "llm_gave_up"
    assert "no such model" in str(heard.error)


@pytest.mark.parametrize(
    "event",
    [
        b"data: []\n\n",
        b"data: null\n\n",
        b"data: hello\n\n",
        b"data: \xff\n\n",
        b'data: {"choices":{}}\n\n',
        b'data: {"choices":[1]}\n\n',
        b'data: {"choices":[{"delta":[]}]}\n\n',
        b'data: {"choices":[{"delta":{"content":1}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":["a"]}}]}\n\n',
        b'data: {"choices":[],"timings":{"prompt_ms":NaN}}\n\n',
        b'data: {"choices":[],"timings":{"prompt_ms":"1"}}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":-1}}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
async def test_b28_a_chunk_of_another_shape_is_an_error(serve: Serve, event: bytes) -> None:
    server = await serve(answering(CHUNKED, framed(said("네")), framed(event), stay=True))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("네", "llm_broken_answer")
    await asyncio.sleep(0.01)
    assert server.open == 0


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH\r\n\r\n", b"\0" * 100, b"HTTP/1.1 abc\r\n\r\n"])
async def test_b28_a_server_that_speaks_something_else(serve: Serve, reply: bytes) -> None:
    server = await serve(answering(reply, stay=True))
    assert (await ask(OpenAIResponder(server.address))).code == "llm_broken_answer"


async def test_b28_a_line_without_end_is_refused_before_it_fills_memory(serve: Serve) -> None:
    sent = 0

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.http_request()
        await connection.send(SSE + b"\r\n")
        while True:
            await connection.send(b"x" * 65536)
            sent += 65536

    server = await serve(script)
    assert (await ask(OpenAIResponder(server.address))).code == "llm_broken_answer"
    await asyncio.sleep(0.01)
    assert server.open == 0
    assert sent < 4 << 20


async def test_an_answer_without_end_is_cut(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED)
        while True:
            await connection.send(framed(said("아 " * 10)))

    server = await serve(script)
    heard = await ask(OpenAIResponder(server.address), max_tokens=4)
    assert len(heard.text) == 16 * (4 + 16)
    assert heard.usage == Usage(finish_reason="length")
    await asyncio.sleep(0.01)
    assert server.open == 0


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_b04_reasoning_is_never_passed_on_but_told(serve: Serve, key: str) -> None:
    thought = json.dumps({"choices": [{"delta": {"content": None, key: "비밀"}}]}).encode()
    server = await serve(whole(b"data: %s\n\n" % thought, said("답입니다."), said(None, "stop"), DONE))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.text == "답입니다."
    assert heard.usage == Usage(finish_reason="stop", reasoning_seen=True)


async def test_no_reasoning_is_not_told_as_some(serve: Serve) -> None:
    empty = b'data: {"choices":[{"delta":{"reasoning_content":null,"reasoning":""}}]}\n\n'
    server = await serve(whole(empty, said("네", "stop"), DONE))
    assert (await ask(OpenAIResponder(server.address))).usage == Usage(finish_reason="stop")


async def test_b05_an_answer_of_nothing_is_no_error(serve: Serve) -> None:
    server = await serve(whole(said(None), said(None, "stop"), DONE))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.tokens, heard.usage, heard.code) == ([], Usage(finish_reason="stop"), None)


def choosy(status: bytes = b"400 Bad Request") -> tuple[Script, list[set[str]]]:
    """A server that refuses fields it does not know."""
    asked: list[set[str]] = []

    async def script(connection: Connection) -> None:
        body = await connection.http_request()
        asked.append(set(body))
        if "cache_prompt" in body or "timings_per_token" in body or "chat_template_kwargs" in body:
            await connection.send(b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\n{}" % status)
        else:
            await connection.send(CHUNKED, framed(said("네", "stop")), framed(DONE), END_OF_BODY)

    return script, asked


@pytest.mark.parametrize("status", [b"400 Bad Request", b"422 Unprocessable Entity"])
async def test_a_server_that_refuses_our_extras_is_asked_without_and_remembered(
    serve: Serve, status: bytes
) -> None:
    script, asked = choosy(status)
    responder = OpenAIResponder((await serve(script, scheme="http")).address)
    assert [(await ask(responder)).text for _ in range(3)] == ["네"] * 3
    plain = {"messages", "stream", "stream_options", "max_tokens", "temperature"}
    assert [fields - plain for fields in asked] == [
        {"cache_prompt", "timings_per_token", "chat_template_kwargs", "return_progress"},
        set(),
        set(),
        set(),
    ]


async def test_a_refusal_for_another_reason_is_told_and_not_blamed_on_the_extras(serve: Serve) -> None:
    asked: list[bool] = []

    async def script(connection: Connection) -> None:
        asked.append("cache_prompt" in await connection.http_request())
        await connection.send(
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 33\r\n\r\n" + b'{"error":{"message":"too long!"}}'
        )

    responder = OpenAIResponder((await serve(script)).address)
    heard = await ask(responder)
    assert heard.code == "llm_refused"
    assert "too long!" in str(heard.error)
    await ask(responder)
    assert asked == [True, False, True, False]


async def test_the_listeners_own_time_is_not_the_engines(serve: Serve) -> None:
    server = await serve(whole(said("a"), said("b"), said("c", "stop"), DONE))
    texts = []
    async for piece in OpenAIResponder(server.address).respond(QUESTION, max_tokens=9):
        await asyncio.sleep(60)
        texts.append(piece.text if isinstance(piece, Token) else None)
    assert texts == ["a", "b", "c", None]


async def test_closing_the_iterator_closes_the_connection_at_once(serve: Serve) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.http_request()
        await connection.send(CHUNKED, framed(said("네")))
        await connection.left()
        gone.set()

    server = await serve(script)
    began = asyncio.get_running_loop().time()
    answer = OpenAIResponder(server.address).respond(QUESTION, max_tokens=9)
    await anext(answer)
    assert server.open == 1
    await answer.aclose()
    await gone.wait()
    assert asyncio.get_running_loop().time() - began < 0.1


@pytest.mark.parametrize("packets", [(), (CHUNKED,), (CHUNKED, framed(said("네")))])
async def test_cancelling_closes_the_connection_at_once(serve: Serve, packets: tuple[bytes, ...]) -> None:
    server = await serve(answering(*packets, stay=True))
    job = asyncio.create_task(ask(OpenAIResponder(server.address)))
    await asyncio.sleep(0.05)
    assert server.open == 1
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    await asyncio.sleep(0.05)
    assert server.open == 0


async def test_every_request_has_a_connection_of_its_own(serve: Serve) -> None:
    server = await serve(whole(said("네", "stop"), DONE))
    responder = OpenAIResponder(server.address)
    assert [(await ask(responder)).text for _ in range(6)] == ["네"] * 6
    assert server.accepted == 6


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://h/v1", "http://", "unix://x", "http://h:99999/v1"]
)
def test_a_url_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(EngineError) as caught:
        OpenAIResponder(url)
    assert caught.value.code == "llm_url_malformed"


FULL: dict[str, tuple[int, dict[str, Any], tuple[int, int]]] = {
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (731 tokens) exceeds the available context size (512 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 731,
                "n_ctx": 512,
            }
        },
        (512, 731),
    ),
    "llama-cpp-python": (
        400,
        {
            "error": {
                "message": "Requested tokens (731) exceed context window of 512",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
        (512, 0),
    ),
    "vllm": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you asked for 4100.",
            "type": "BadRequestError",
            "code": 400,
        },
        (4096, 0),
    ),
    "a proxy": (500, {"detail": "prompt is too long"}, (0, 0)),
    "figures that are none": (
        400,
        {"error": {"message": "?", "type": "exceed_context_size_error", "n_ctx": "many"}},
        (0, 0),
    ),
}


@pytest.mark.parametrize("server", FULL)
async def test_a_request_that_is_too_long_is_told_as_such_and_not_asked_again(
    serve: Serve, server: str
) -> None:
    status, body, told = FULL[server]
    said_no = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(said_no)}\r\n\r\n"
    running = await serve(answering(head.encode() + said_no))
    heard = await ask(OpenAIResponder(running.address))
    assert heard.code == "llm_context_full"
    assert heard.error is not None
    assert (heard.error.facts["context_tokens"], heard.error.facts["prompt_tokens"]) == told
    assert running.accepted == 1


@pytest.mark.parametrize("server", ["llama.cpp", "vllm"])
async def test_the_same_inside_a_stream_or_with_status_200(serve: Serve, server: str) -> None:
    _, body, told = FULL[server]
    error = body if "error" in body else {"error": body}
    in_stream = await serve(whole(b"data: " + json.dumps(error).encode() + b"\n\n"))
    heard = await ask(OpenAIResponder(in_stream.address))
    assert heard.error is not None
    assert (heard.code, heard.error.facts["context_tokens"]) == ("llm_context_full", told[0])

    said_no = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(said_no)}\r\n\r\n"
    instead = await serve(answering(head.encode() + said_no))
    assert (await ask(OpenAIResponder(instead.address))).code == "llm_context_full"


async def test_a_schema_travels_in_its_order_as_response_format(serve: Serve) -> None:
    asked: list[dict[str, Any]] = []

    async def script(connection: Connection) -> None:
        asked.append(await connection.http_request())
        await connection.send(CHUNKED, framed(said("{}", "stop")), framed(DONE), END_OF_BODY)

    server = await serve(script)
    schema = {"type": "object", "properties": {"say": {"type": "string"}, "a": {}}, "required": ["say"]}
    responder = OpenAIResponder(server.address)
    async with aclosing(responder.respond(QUESTION, max_tokens=50, schema=schema)) as answer:
        assert [piece async for piece in answer]
    told = asked[0]["response_format"]
    assert told == {
        "type": "json_schema",
        "json_schema": {"name": "form", "strict": True, "schema": schema},
    }
    assert list(told["json_schema"]["schema"]["properties"]) == ["say", "a"]


# Tools.

TOOL = {"type": "function", "function": {"name": "book_room", "parameters": {"type": "object"}}}


def calling(finish_reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


async def test_tools_are_a_field_of_every_request(serve: Serve) -> None:
    asked: list[dict[str, Any]] = []

    async def script(connection: Connection) -> None:
        asked.append(await connection.http_request())
        await connection.send(CHUNKED, framed(said("네", "stop")), framed(DONE), END_OF_BODY)

    server = await serve(script)
    await ask(OpenAIResponder(server.address, tools=[TOOL]))
    await ask(OpenAIResponder(server.address))
    assert [request.get("tools") for request in asked] == [[TOOL], None]


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        (calling(tool_calls=[{"index": 0, "function": {"name": "book_room", "arguments": ""}}]), "book_room"),
        (calling(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]), "?"),
        (calling(tool_calls=["odd"]), "?"),
        (calling(function_call={"name": "book_room"}), "book_room"),
        (calling("tool_calls"), "?"),
    ],
    ids=["call", "without a name", "odd", "older", "reason alone"],
)
async def test_a_call_of_a_tool_ends_the_answer_and_is_no_text(serve: Serve, chunk: bytes, name: str) -> None:
    server = await serve(whole(said("One moment."), chunk, said("Room 7.", "stop"), DONE))
    heard = await ask(OpenAIResponder(server.address, tools=[TOOL]))
    assert (heard.code, heard.texts, heard.usage) == ("llm_tool_call", ["One moment."], None)
    assert heard.error is not None
    assert heard.error.facts["tools"] == name
    await asyncio.sleep(0.01)
    assert server.open == 0, "what it goes on to write is not waited for"


async def test_an_empty_list_of_calls_is_no_call(serve: Serve) -> None:
    server = await serve(whole(calling(content="It is ", tool_calls=[]), said("three.", "stop"), DONE))
    heard = await ask(OpenAIResponder(server.address, tools=[TOOL]))
    assert (heard.code, heard.text) == (None, "It is three.")


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("http://host:8000/", "http://host:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("https://user:p%40ss@host", "https://user:p%40ss@host/v1"),
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("http://host/v1//", "http://host/v1"),
        ("http://host/proxy/v1", "http://host/proxy/v1"),
        ("http://host/other", "http://host/other"),
    ],
)
def test_a_host_alone_is_asked_where_all_servers_are(url: str, base: str) -> None:
    assert place(url) == (None, base)


async def test_a_page_in_place_of_an_answer_is_told_with_its_words(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.http_request()
        page = b"<html>Sign in</html>"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
        await connection.send(head % len(page) + page)

    server = await serve(script)
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("", "llm_gave_up")
