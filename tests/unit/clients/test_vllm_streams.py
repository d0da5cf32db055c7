"""What a real vLLM has streamed (tests/fakes/recordings/vllm), as the client of the daemon reads it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.fakes.engines import ScriptedEngines
from tests.fakes.vllm_program import RECORDINGS
from tests.unit.clients.scripted import CHUNKED, END_OF_BODY, Script, Serve, framed
from tests.unit.clients.test_openai_llm import answering, ask

from ondam.clients.openai_llm import OpenAIResponder
from ondam.journal.turn import Turn
from ondam.messages import message
from ondam.pipeline.ports import Responder, Usage
from ondam.pipeline.respond import prompt, respond
from ondam.types import TurnId


def recorded(case: str, name: str) -> bytes:
    return (RECORDINGS / case / name).read_bytes()


def stream(case: str, name: str) -> Script:
    events = [event + b"\n\n" for event in recorded(case, name).split(b"\n\n") if event]
    return answering(CHUNKED, *map(framed, events), END_OF_BODY, stay=True)


@pytest.mark.parametrize("case", ["eager", "graphs", "kv-fp8", "ngram"])
async def test_an_answer_comes_with_what_it_cost(serve: Serve, case: str) -> None:
    server = await serve(stream(case, "thinking-off.sse"))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code is None
    assert heard.text
    assert heard.usage is not None
    assert (heard.usage.prompt_tokens, heard.usage.cached_tokens, heard.usage.output_tokens) == (31, 0, 24)
    assert not heard.usage.reasoning_seen


async def test_reasoning_alone_is_no_word_and_is_told(serve: Serve) -> None:
    server = await serve(stream("eager", "thinking-on.sse"))
    heard = await ask(OpenAIResponder(server.address))
    assert (heard.text, heard.code) == ("", None)
    assert heard.usage == Usage(
        prompt_tokens=25, cached_tokens=0, output_tokens=24, finish_reason="length", reasoning_seen=True
    )


class Served(ScriptedEngines):
    """The scripted engines with a real client for the language engine."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.real = OpenAIResponder(address)

    def responder(self) -> Responder:
        return self.real


async def test_a_turn_of_reasoning_alone_names_its_cause_and_is_not_asked_again(serve: Serve) -> None:
    server = await serve(stream("eager", "thinking-on.sse"))
    turn = Turn(TurnId(1), "test", datetime.now(UTC))
    engines = Served(server.address)
    said = [
        clause
        async for clause in respond(turn, prompt("Be brief.", [], "Hello?"), engines, "en", 64, lambda: 0)
    ]
    # Silence has a name: the user is told that there was no answer, the record says why.
    assert said == []
    assert (turn.cause, turn.thought, turn.llm_calls, server.accepted) == ("engine_thinks", True, 1, 1)
    for language in ("en", "ko"):
        assert message("engine_thinks", language, address=server.address).next


async def test_a_core_that_dies_under_an_answer_is_told_after_what_was_said(serve: Serve) -> None:
    server = await serve(stream("core-killed", "cut.sse"))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code == "llm_gave_up"
    assert heard.error is not None
    assert "EngineCore encountered an issue" in str(heard.error.facts["reason"])


async def test_a_prompt_without_room_is_told_with_how_much_there_is(serve: Serve) -> None:
    body = recorded("eager", "too-long.json")
    head = f"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    server = await serve(answering(head.encode() + body))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.code == "llm_context_full"
    assert heard.error is not None
    assert heard.error.facts["context_tokens"] == 2048


async def test_a_form_is_kept_to(serve: Serve) -> None:
    server = await serve(stream("eager", "form.sse"))
    heard = await ask(OpenAIResponder(server.address))
    assert heard.text.startswith("{")
    assert heard.text.split()[1].startswith('"ok"')
