"""The ASGI wrapper: what is asked for is read on the way, and a client that left is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from ondam_engines.llama_cpp.clients import (
    ASKING,
    CHAT,
    LONGEST_BODY,
    Client,
    Clients,
    Floor,
    Receive,
    Scope,
    Send,
)


class RecordedFlag:
    def __init__(self) -> None:
        self.raised = False

    def up(self) -> None:
        self.raised = True

    def down(self) -> None:
        self.raised = False


class Wire:
    """The server's end of one HTTP connection."""

    def __init__(self, *body: bytes, path: str = CHAT) -> None:
        self.scope = {"type": "http", "method": "POST", "path": path}
        self.sent: list[MutableMapping[str, Any]] = []
        self.queue: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        for number, part in enumerate(body):
            self.queue.put_nowait({"type": "http.request", "body": part, "more_body": number < len(body) - 1})

    async def receive(self) -> MutableMapping[str, Any]:
        return await self.queue.get()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)

    def hang_up(self) -> None:
        self.queue.put_nowait({"type": "http.disconnect"})


def request(**fields: Any) -> bytes:
    return json.dumps({"messages": [], "stream": True} | fields).encode()


async def client_seen_by_server(wire: Wire) -> tuple[Client | None, bytes]:
    seen: list[tuple[Client | None, bytes]] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        seen.append((ASKING.get(), (await receive())["body"]))

    await Clients(app, Floor(RecordedFlag()))(wire.scope, wire.receive, wire.send)
    return seen[0]


async def test_the_server_gets_the_body_whole_however_it_was_cut() -> None:
    body = request(stream_options={"include_usage": True})
    client, got = await client_seen_by_server(Wire(body[:7], body[7:20], body[20:]))
    assert got == body
    assert client is not None
    assert client.wants_usage


async def test_usage_is_not_wanted_unless_asked_for() -> None:
    for body in (
        request(),
        request(stream_options={"include_usage": False}),
        request(stream_options=[]),
        b"[]",
        b"{",
        b"[" * 100_000,
    ):
        client, got = await client_seen_by_server(Wire(body))
        assert got == body
        assert client is not None
        assert not client.wants_usage


async def test_other_routes_are_left_alone() -> None:
    client, _ = await client_seen_by_server(Wire(b"{}", path="/v1/completions"))
    assert client is None


async def test_a_body_that_is_too_long_is_refused_before_it_is_all_held() -> None:
    half = b" " * (LONGEST_BODY // 2)
    wire = Wire(half, half, half, half, half)
    served = []

    async def app(*_: object) -> None:
        served.append(1)

    await Clients(app, Floor(RecordedFlag()))(wire.scope, wire.receive, wire.send)
    assert wire.sent[0]["status"] == 413
    assert not served
    assert wire.queue.qsize() == 2


async def test_a_client_that_leaves_while_being_served_stops_the_computing_and_the_server_hears_of_it() -> (
    None
):
    wire, flag = Wire(request()), RecordedFlag()
    floor = Floor(flag)
    heard = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        client = ASKING.get()
        assert client is not None
        assert floor.take(client)
        assert not flag.raised
        wire.hang_up()
        heard.append(await receive())

    await Clients(app, floor)(wire.scope, wire.receive, wire.send)
    assert flag.raised
    assert heard == [{"type": "http.disconnect"}]


async def test_a_client_that_leaves_the_queue_stops_nobody() -> None:
    flag = RecordedFlag()
    floor = Floor(flag)
    served, waiting = Client(), Client()
    assert floor.take(served)
    floor.leave(waiting)
    assert not flag.raised
    assert floor.take(waiting) is False


async def test_the_next_client_is_computed_for_after_one_has_left() -> None:
    flag = RecordedFlag()
    floor = Floor(flag)
    first = Client()
    floor.take(first)
    floor.leave(first)
    assert floor.take(Client()) is True
    assert not flag.raised
    floor.leave(first)
    assert not flag.raised


async def test_a_client_that_leaves_while_asking_is_not_served() -> None:
    wire = Wire(request()[:5], request()[5:])
    wire.queue.get_nowait()
    wire.queue.get_nowait()
    wire.hang_up()

    async def app(*_: object) -> None:
        raise AssertionError("served")

    await Clients(app, Floor(RecordedFlag()))(wire.scope, wire.receive, wire.send)
    assert wire.sent == []


async def test_watching_ends_with_the_answer() -> None:
    before = len(asyncio.all_tasks())
    await client_seen_by_server(Wire(request()))
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before
