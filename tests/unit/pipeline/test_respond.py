"""Asking again with less, computing ahead, and forms; on a real client and a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fakes.engines import ScriptedEngines

from ondam.clients.openai_llm import OpenAIResponder
from ondam.dialog.history import Exchange
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.pipeline.context import Context
from ondam.pipeline.ports import Responder
from ondam.pipeline.respond import EXCUSES, prefill, prompt, respond
from ondam.speech import Clause
from ondam.speech.form import Form, form_of
from ondam.types import TurnId

HISTORY = [Exchange(f"question {n}", f"answer {n}.") for n in range(1, 5)]
ANSWER = ("It is three. ", "Good ", "bye.")
TOO_LONG = {
    "error": {
        "message": "request (900 tokens) exceeds the available context size (512 tokens)",
        "type": "exceed_context_size_error",
        "n_ctx": 512,
        "n_prompt_tokens": 900,
    }
}


class Server:
    """An OpenAI-compatible server: refuses as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[dict[str, Any]] = []
        self.refusals: list[web.Response | Sequence[dict[str, Any]] | None] = []
        """For each request: an answer instead, chunks instead of the usual ones, or nothing unusual."""
        self.tokens: Sequence[str] = ANSWER
        self.closed = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        refusal = self.refusals.pop(0) if self.refusals else None
        if isinstance(refusal, web.Response):
            return refusal
        chunks = self.usual() if refusal is None else refusal
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    def usual(self) -> list[dict[str, Any]]:
        texts = [{"choices": [{"delta": {"content": text}}]} for text in self.tokens]
        return [
            *texts,
            ended("stop"),
            {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 3}},
        ]

    def histories(self) -> list[int]:
        """Of each request: how many exchanges it held."""
        return [(len(asked["messages"]) - 2) // 2 for asked in self.asked]


def ended(reason: str) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def refused(status: int, body: object) -> web.Response:
    return web.json_response(body, status=status)


class Served(ScriptedEngines):
    """The scripted engines with a real client for the language engine."""

    def __init__(self, address: str, context_tokens: int = 0) -> None:
        super().__init__()
        self.real = OpenAIResponder(address, context_tokens=context_tokens, first_token_timeout_s=5)

    def responder(self) -> Responder:
        return self.real


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    path = folder / "llm.sock"
    await web.UnixSite(runner, path).start()
    made.address = f"unix://{path}"
    try:
        yield made
    finally:
        await runner.cleanup()


def turn() -> Turn:
    return Turn(TurnId(1), "test", datetime.now(UTC))


async def answered(
    engines: ScriptedEngines,
    history: Sequence[Exchange] = HISTORY,
    question: str = "What time is it?",
    *,
    context: Context | None = None,
    form: Form | None = None,
) -> tuple[Turn, list[Clause], EngineError | None]:
    made, clauses, error = turn(), [], None
    asked = prompt("Be brief.", history, question, form=form)
    try:
        async for clause in respond(made, asked, engines, "en", 64, lambda: 0, context=context, form=form):
            clauses.append(clause)
    except EngineError as failure:
        error = failure
    return made, clauses, error


WITHOUT_ROOM = {
    "a 400 that says so": refused(400, TOO_LONG),
    "a 400 that does not": refused(400, {"error": {"message": "bad request"}}),
    "an error with status 200": refused(200, {"error": {"message": "cannot"}}),
    "an error in the stream": [{"error": {"message": "out of memory"}}],
    "a stream without a word": [ended("length")],
    "a stream of no tokens": [ended("stop"), {"choices": [], "usage": {"completion_tokens": 0}}],
    "a stream of nothing": [],
}


@pytest.mark.parametrize("kind", WITHOUT_ROOM)
async def test_an_overfull_server_is_asked_once_more_with_less_and_the_user_hears_an_answer(
    tmp_path: Path, kind: str
) -> None:
    async with server(tmp_path) as llm:
        refusal: Any = WITHOUT_ROOM[kind]
        # A 400 is first asked again without the fields of our own.
        again = 1 if kind == "a 400 that does not" else 0
        llm.refusals = [copied(refusal) for _ in range(1 + again)]
        made, clauses, error = await answered(Served(llm.address))
        assert error is None
        assert [clause.written for clause in clauses] == ["It is three.", "Good bye."]
        assert made.llm_calls == 2
        assert llm.histories()[-1] in {0, 1}
        assert llm.histories()[0] == 4
        assert len(llm.asked) == 2 + again
        assert llm.asked[-1]["messages"][0] == {"role": "system", "content": "Be brief."}
        assert llm.asked[-1]["messages"][-1] == {"role": "user", "content": "What time is it?"}


def copied(refusal: Any) -> Any:
    """A response of aiohttp's is good for one request."""
    if isinstance(refusal, web.Response):
        return refused(refusal.status, json.loads(refusal.body))  # type: ignore[arg-type]
    return refusal


async def test_a_question_too_long_even_by_itself_is_said_to_be_that(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        llm.refusals = [refused(400, TOO_LONG), refused(400, TOO_LONG)]
        made, clauses, error = await answered(Served(llm.address))
        assert error is not None
        assert error.code == "llm_question_too_long"
        assert EXCUSES[error.code] == "excuse_question_too_long"
        assert (made.llm_calls, clauses) == (2, [])

        llm.refusals = [refused(400, TOO_LONG)]
        made, _, error = await answered(Served(llm.address), history=())
        assert error is not None
        assert (error.code, made.llm_calls) == ("llm_question_too_long", 1)


async def test_other_failures_and_answers_of_nothing_are_not_asked_again(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        llm.refusals = [refused(500, {"error": {"message": "broken"}})]
        made, _, error = await answered(Served(llm.address))
        assert error is not None
        assert (error.code, made.llm_calls) == ("llm_failed", 1)

        # The model had nothing to say: its end is the one token that it made.
        llm.refusals = [[ended("stop"), {"choices": [], "usage": {"completion_tokens": 1}}]]
        made, clauses, error = await answered(Served(llm.address))
        assert (error, clauses, made.llm_calls) == (None, [], 1)

        # Nothing could be left out of it.
        llm.refusals = [[ended("length")]]
        made, clauses, error = await answered(Served(llm.address), history=())
        assert (error, clauses, made.llm_calls) == (None, [], 1)


async def test_an_answer_that_broke_off_is_not_begun_again(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        said = {"choices": [{"delta": {"content": "It is three. And "}}]}
        llm.refusals = [[said, TOO_LONG]]
        made, clauses, error = await answered(Served(llm.address))
        assert error is not None
        assert error.code == "llm_context_full"
        assert [clause.written for clause in clauses] == ["It is three."]
        assert made.llm_calls == 1


async def test_what_did_not_fit_once_is_not_sent_in_the_turns_after(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        engines, context = Served(llm.address), Context()
        llm.refusals = [[ended("length")]]
        await answered(engines, context=context)
        later = [*HISTORY, Exchange("What time is it?", "It is three. Good bye.")]
        made, _, _ = await answered(engines, later, "And now?", context=context)
        assert llm.histories() == [4, 0, 1]
        assert made.llm_calls == 1


async def test_what_the_engine_reports_is_not_overrun(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        made, _, _ = await answered(Served(llm.address, context_tokens=160), context=Context())
        # Ten messages of about 12 tokens, and 64 for the answer.
        assert llm.histories() == [2]
        assert made.llm_calls == 1


async def test_the_next_request_begins_with_every_byte_that_was_computed_ahead(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        engines, context = Served(llm.address), Context()
        made, _, _ = await answered(engines, context=context)
        assert made.written == "It is three. Good bye."
        later = [*HISTORY, Exchange("What time is it?", made.written)]
        usage = await prefill(prompt("Be brief.", later, ""), engines, 64, context=context)
        assert usage is not None
        assert usage.prompt_tokens == 40
        await answered(engines, later, "And now?", context=context)
        ahead, real = llm.asked[1], llm.asked[2]
        assert ahead["max_tokens"] == 1
        assert ahead["messages"][:-1] == real["messages"][:-1]
        assert (ahead["messages"][-1]["content"], real["messages"][-1]["content"]) == ("", "And now?")


async def test_what_the_next_question_would_push_out_is_left_out_while_the_answer_is_spoken(
    tmp_path: Path,
) -> None:
    async with server(tmp_path) as llm:
        # 10 messages of about 12 tokens and 64: enough for the request, not for 128 of a question to come.
        engines, context = Served(llm.address, context_tokens=220), Context()
        await prefill(prompt("Be brief.", HISTORY, ""), engines, 64, context=context)
        await answered(engines, context=context)
        assert llm.histories()[0] < 4
        assert llm.histories()[1] == llm.histories()[0]


async def test_a_prefill_that_fails_costs_nothing_but_time(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        llm.refusals = [refused(400, TOO_LONG)]
        assert await prefill(prompt("", HISTORY, ""), Served(llm.address), 64) is None
    down = ScriptedEngines(down={"llm"})
    assert await prefill(prompt("", HISTORY, ""), down, 64) is None


async def test_a_prefill_that_is_cancelled_lets_go_of_the_engine() -> None:
    engines = ScriptedEngines(ttft_s=60)
    ahead = asyncio.create_task(prefill(prompt("", HISTORY, ""), engines, 64))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert engines.running == 1
    ahead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ahead
    assert engines.running == 0


FORM = form_of(
    {
        "type": "object",
        "properties": {"intent": {"enum": ["time", "weather"]}, "keep": {"enum": ["on", "end"]}},
        "required": ["intent"],
    },
    instruction="Fill in {slots}.",
    max_tokens=40,
)


async def test_what_an_answer_says_is_whole_before_its_slots_come(tmp_path: Path) -> None:
    tokens = ('{"say": "It is ', 'three. Good bye", "', 'intent": "ti', 'me"}')
    engines = ScriptedEngines(tokens=tokens, token_s=0.001, ttft_s=0.001)
    made, before_slots = turn(), []
    asked = prompt("Be brief.", (), "What time is it?", form=FORM)
    async for clause in respond(made, asked, engines, "en", 64, lambda: 0, form=FORM):
        before_slots.append((clause.written, made.streamed, made.slots))
    # The last clause has no stop, and yet does not wait for the slots.
    assert before_slots == [("It is three.", 2, None), ("Good bye", 2, None)]
    assert made.slots == {"intent": "time"}
    assert made.reply == "It is three. Good bye"
    assert (made.llm_calls, made.cause) == (1, None)
    assert made.as_json()["slots"] == {"intent": "time"}
    assert "slots" not in made.as_json(text=False)


async def test_half_a_sentence_that_the_form_cut_off_is_not_said() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    short = form_of(schema, instruction="", max_tokens=40, longest_say=20)
    made, clauses, _ = await answered(
        ScriptedEngines(tokens=('{"say":"It is three. And so ', '","n":3}')), form=short
    )
    assert [clause.written for clause in clauses] == ["It is three."]
    assert made.slots == {"n": 3}
    # It is all there is: better than nothing.
    tokens = ('{"say":"It is only three and', '","n":3}')
    made, clauses, _ = await answered(ScriptedEngines(tokens=tokens), form=short)
    assert [clause.written for clause in clauses] == ["It is only three and"]


async def test_the_server_is_told_the_schema_and_the_model_its_slots(tmp_path: Path) -> None:
    async with server(tmp_path) as llm:
        llm.tokens = ('{"say":"Three.","intent":"time","keep":"on"}',)
        made, clauses, _ = await answered(Served(llm.address), form=FORM)
        assert [clause.written for clause in clauses] == ["Three."]
        assert made.slots == {"intent": "time", "keep": "on"}
        asked = llm.asked[0]
        assert asked["max_tokens"] == 64 + 40
        schema = asked["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["say", "intent", "keep"]
        assert asked["messages"][0]["content"] == (
            'Be brief.\n\nFill in {"intent":{"enum":["time","weather"]},"keep":{"enum":["on","end"]}}.'
        )
        # History is what was said, not how it was written.
        assert asked["messages"][2]["content"] == "answer 1."


@pytest.mark.parametrize(
    ("tokens", "cause"),
    [
        (('{"say":"Three.","inte',), "form_incomplete"),
        (('{"say":"Three.","intent":"tea"}',), "form_not_kept"),
        (("Three.",), "form_not_kept"),
    ],
)
async def test_a_form_that_is_not_filled_in_costs_the_slots_and_not_the_answer(
    tokens: Sequence[str], cause: str
) -> None:
    made, clauses, error = await answered(ScriptedEngines(tokens=tokens), form=FORM)
    assert [clause.written for clause in clauses] == ["Three."]
    assert (made.slots, made.cause, error) == (None, cause, None)
    assert "slots" not in made.as_json()


@pytest.mark.parametrize(
    ("tokens", "thought"),
    [
        (("<think>", "They want the time.", "</think>", "It is three."), True),
        (("They want the time.", "</think>", "It is three."), True),
        (("<think>", "\n\n", "</think>", "It is three."), False),  # what a model writes that was told not to
        (("It is ", "three."), False),
    ],
)
async def test_a_turn_knows_that_its_model_reasoned(tokens: tuple[str, ...], thought: bool) -> None:
    made, _, _ = await answered(ScriptedEngines(tokens=tokens))
    assert made.thought is thought
    assert made.as_json()["thought"] is thought


# Tools.


async def test_a_call_of_a_tool_ends_the_turn_after_what_was_said_before_it(tmp_path: Path) -> None:
    call = {"choices": [{"delta": {"tool_calls": [{"function": {"name": "book_room"}}]}}]}
    async with server(tmp_path) as llm:
        llm.refusals = [[{"choices": [{"delta": {"content": "One moment."}}]}, call, ended("tool_calls")]]
        made, clauses, error = await answered(Served(llm.address))
    assert error is not None
    assert (error.code, error.facts["tools"], made.llm_calls) == ("llm_tool_call", "book_room", 1)
    assert [clause.written for clause in clauses] == ["One moment."]
    assert EXCUSES[error.code] == "excuse_tool_call"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('<tool_call>\n{"name": "book_room", "arguments": {"nights": 2}}\n</tool_call>', "book_room"),
        ('<tool_call>{"na', "?"),
    ],
)
async def test_a_call_in_words_is_never_spoken_and_told_as_one(
    tmp_path: Path, written: str, name: str
) -> None:
    async with server(tmp_path) as llm:
        llm.tokens = list(written)
        _, clauses, error = await answered(Served(llm.address))
        assert clauses == []
        assert error is not None
        assert (error.code, error.facts["tools"]) == ("llm_tool_call", name)
        assert error.message("ko").text

        # Words beside it are an answer.
        llm.tokens = ["It is three. ", written]
        _, clauses, error = await answered(Served(llm.address))
        assert (error, [clause.written for clause in clauses]) == (None, ["It is three."])
