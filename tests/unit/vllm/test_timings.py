from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

from tests.fakes.vllm_program import RECORDINGS

from ondam.clients.chat_chunk import chunk
from ondam_engines.vllm.timings import Timings

EVENTS = (RECORDINGS / "eager" / "thinking-off.sse").read_bytes().split(b"\n\n")[:-1]


class Clock:
    """Ten milliseconds further with every look."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


async def timed(*bodies: bytes, kind: bytes = b"text/event-stream; charset=utf-8") -> list[bytes]:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    timings = Timings(send, Clock())
    await timings({"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", kind)]})
    for body in bodies:
        await timings({"type": "http.response.body", "body": body, "more_body": True})
    return [message["body"] for message in sent[1:]]


def data(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.removeprefix(b"data: "))
    return found


async def test_every_chunk_tells_how_long_the_engine_took_so_far() -> None:
    bodies = await timed(*(event + b"\n\n" for event in EVENTS))
    assert bodies[-1] == b"data: [DONE]\n\n"
    role, empty, first = (data(body)["timings"] for body in bodies[:3])
    assert role == {"prompt_ms": 10.0, "predicted_ms": 0.0, "predicted_n": 0}
    assert empty == {"prompt_ms": 10.0, "predicted_ms": 10.0, "predicted_n": 1}
    assert first["predicted_ms"] == 20.0


async def test_nothing_else_of_a_chunk_is_changed() -> None:
    bodies = await timed(*(event + b"\n\n" for event in EVENTS))
    for before, after in zip(EVENTS[:-1], bodies[:-1], strict=True):
        assert {name: value for name, value in data(after).items() if name != "timings"} == data(before)


async def test_the_daemon_reads_them() -> None:
    bodies = await timed(*(event + b"\n\n" for event in EVENTS))
    read = chunk(bodies[3].decode().removeprefix("data: ").strip())
    assert (read.engine_ms, read.usage.prompt_ms, read.usage.predicted_ms) == (40.0, 10.0, 30.0)
    last = chunk(bodies[-2].decode().removeprefix("data: ").strip())
    assert (last.usage.prompt_tokens, last.usage.output_tokens) == (
        data(EVENTS[-2])["usage"]["prompt_tokens"],
        24,
    )


async def test_several_events_in_one_piece_are_each_told() -> None:
    (body,) = await timed(b"\n\n".join(EVENTS) + b"\n\n")
    assert body.count(b'"timings"') == len(EVENTS) - 1


async def test_an_error_and_what_is_no_stream_stay_as_they_are() -> None:
    error = b'data: {"error": {"message": "EngineCore encountered an issue."}}\n\n'
    assert await timed(error) == [error]
    whole = b'{"choices":[]}'
    assert await timed(whole, kind=b"application/json") == [whole]
