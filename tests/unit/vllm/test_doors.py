from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ondam_engines.vllm.doors import CONFIG, HEADER, KEY, Doors

OPEN = ["/health", "/v1/models", "/v1/chat/completions", "/metrics", "/version"]
SHUT = [
    "/collective_rpc",
    "/server_info",
    "/sleep",
    "/wake_up",
    "/reset_prefix_cache",
    "/load_lora_adapter",
    "/start_profile",
    "/docs",
    "//v1/models",
    "/v1/../collective_rpc",
    "/v1/models/../../collective_rpc",
    "/HEALTH",
    "/health/",
    "",
    CONFIG,
]


async def inside(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


async def asked(path: str, *headers: tuple[bytes, bytes], kind: str = "http") -> tuple[Any, bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read of what is not let in")

    app = SimpleNamespace(state=SimpleNamespace(vllm_config={"model_config": {"dtype": "bf16"}}))
    await Doors(inside)({"type": kind, "path": path, "headers": list(headers), "app": app}, receive, send)
    if kind != "http":
        return sent, b""
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "secret")


@pytest.mark.parametrize("path", OPEN)
async def test_what_the_daemon_and_other_tools_need_is_open(path: str) -> None:
    assert await asked(path) == (200, b"inside")


@pytest.mark.parametrize("path", SHUT)
async def test_everything_else_is_not_there_however_it_is_written(path: str) -> None:
    assert (await asked(path))[0] == 404


@pytest.mark.parametrize("path", ["/collective_rpc", "/server_info"])
async def test_the_key_opens_no_route_of_vllms_own(path: str) -> None:
    assert (await asked(path, (HEADER, b"secret")))[0] == 404


@pytest.mark.parametrize(
    "headers", [[], [(HEADER, b"")], [(HEADER, b"wrong")], [(HEADER, b"secret"), (HEADER, b"secret")]]
)
async def test_the_configuration_needs_the_key(headers: list[tuple[bytes, bytes]]) -> None:
    assert (await asked(CONFIG, *headers))[0] == 404


async def test_without_a_key_in_the_environment_nobody_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY)
    assert (await asked(CONFIG, (HEADER, b"")))[0] == 404


async def test_the_configuration_is_vllms_own_after_all_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fakes.vllm_program import HERE

    monkeypatch.syspath_prepend(str(HERE))
    status, body = await asked(CONFIG, (HEADER, b"secret"))
    assert (status, json.loads(body)) == (200, {"vllm_config": {"model_config": {"dtype": "bf16"}}})


async def test_a_websocket_is_closed() -> None:
    sent, _ = await asked("/v1/realtime", kind="websocket")
    assert sent == [{"type": "websocket.close", "code": 1008}]
