"""The answering stage on the real language engine: long conversations, what is computed ahead, forms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ondam.clients.openai_llm import OpenAIResponder
from ondam.dialog.history import Exchange, History
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.pipeline.context import Context
from ondam.pipeline.ports import Responder, Usage
from ondam.pipeline.respond import prefill, prompt, respond
from ondam.places import places
from ondam.planner.plan import PlannedEngine
from ondam.speech import Clause
from ondam.speech.form import Form, form_of
from ondam.supervisor.manifest import engine_roots, find_engines
from ondam.types import TurnId
from tests.engine_contract.launched import Launched, Prepared
from tests.fakes.engines import ScriptedEngines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

NARROW = 512
ANSWER = 32
"""Tokens of an answer at most: what is measured is the prompt."""

QUESTIONS = (
    "What is the capital of France?",
    "Why is the sky blue?",
    "How many days are in a week?",
    "What do plants need to grow?",
    "Which planet do we live on?",
    "How hot is the sun?",
)


@contextmanager
def language_engine(runtime: Path, **options: Any) -> Iterator[Launched]:
    data = places()
    folder = find_engines(engine_roots(data.user_engines))["llama_server"]
    card = Catalog.of(data).card("smollm2-135m-instruct")
    planned = PlannedEngine(
        engine="llama_server",
        stage="llm",
        model=card.id,
        model_path=Store(data.models).path(card),
        model_sha256=None,
        device="cpu",
        threads=2,
        language="en",
        options={**folder.manifest.options, **options},
    )
    with Launched(Prepared(folder, planned, data), runtime) as engine:
        yield engine


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    with language_engine(tmp_path_factory.mktemp("narrow"), context_length=NARROW) as engine:
        yield engine


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    with language_engine(tmp_path_factory.mktemp("roomy")) as engine:
        yield engine


class Served(ScriptedEngines):
    """The scripted engines with the real language engine."""

    def __init__(self, engine: Launched, context_tokens: int = 0) -> None:
        super().__init__()
        self.real = OpenAIResponder(
            engine.address, temperature=0.0, context_tokens=context_tokens, first_token_timeout_s=60
        )

    def responder(self) -> Responder:
        return self.real


async def answered(
    engines: Served,
    history: History,
    question: str,
    context: Context,
    *,
    system: str = "Answer in one short sentence.",
    form: Form | None = None,
) -> tuple[Turn, list[Clause]]:
    turn = Turn(TurnId(1), "test", datetime.now(UTC))
    asked = prompt(system, history.exchanges, question, form=form)
    clauses = [
        clause
        async for clause in respond(
            turn, asked, engines, "en", ANSWER, time.monotonic_ns, context=context, form=form
        )
    ]
    return turn, clauses


async def test_a_conversation_longer_than_the_context_goes_on_without_a_refusal(narrow: Launched) -> None:
    engines, context, history = Served(narrow, NARROW), Context(), History(40)
    cached = []
    for number in range(15):
        question = f"{QUESTIONS[number % 6]} Tell me in a way that a child would like, please."
        turn, clauses = await answered(engines, history, question, context)
        assert clauses
        assert turn.llm_calls == 1
        assert turn.prompt_tokens is not None
        assert turn.prompt_tokens + ANSWER <= NARROW
        history = history.with_exchange(question, turn.written)
        cached.append((turn.cached_tokens or 0) / turn.prompt_tokens)
    # In blocks: most turns find all but their own question in the cache, and few begin anew.
    assert sum(share > 0.6 for share in cached[1:]) >= 9, cached


async def test_an_engine_that_reports_nothing_is_asked_once_more_when_it_is_full(narrow: Launched) -> None:
    engines, context, history = Served(narrow), Context(), History(40)
    for number in range(12):
        history = history.with_exchange(
            f"{QUESTIONS[number % 6]} {number}", "I have told you that before. " * 5
        )
    turn, clauses = await answered(engines, history, QUESTIONS[0], context)
    assert clauses
    assert turn.llm_calls == 2
    # What it told of itself in the refusal is kept to from then on.
    for question in QUESTIONS[:3]:
        history = history.with_exchange(question, "I have told you that before. " * 5)
        turn, clauses = await answered(engines, history, question, context)
        assert clauses
        assert turn.llm_calls == 1


async def test_a_question_longer_than_the_context_is_told_as_that(narrow: Launched) -> None:
    history = History(4).with_exchange(QUESTIONS[0], "Paris.")
    with pytest.raises(EngineError) as refused:
        await answered(Served(narrow), history, "word " * 700, Context())
    assert refused.value.code == "llm_question_too_long"
    assert refused.value.facts["context_tokens"] == NARROW


async def conversation(engines: Served, system: str, *, ahead: bool, heard: float) -> list[tuple[int, int]]:
    """Of each turn from the second on: tokens that were computed while the user waited, and what there were.

    ``heard``: how much of each answer was played before the user spoke over it.
    """
    context, history, costs = Context(), History(12), []
    for question in QUESTIONS[:4]:
        for draft in (question[:8], question[:14]):
            # Drafts that were dropped: begun in a pause, left when the user went on.
            turn = Turn(TurnId(1), "test", datetime.now(UTC))
            asked = prompt(system, history.exchanges, draft)
            dropped = respond(turn, asked, engines, "en", ANSWER, time.monotonic_ns, context=context)
            await anext(dropped, None)
            await dropped.aclose()
            # The user goes on speaking. At once, a request finds that slot busy and takes the other.
            await asyncio.sleep(0.5)
        turn, _ = await answered(engines, history, question, context, system=system)
        assert turn.prompt_tokens is not None
        costs.append((turn.prompt_tokens - (turn.cached_tokens or 0), turn.prompt_tokens))
        if ahead:
            expected = history.with_exchange(question, turn.written)
            assert await prefill(prompt(system, expected.exchanges, ""), engines, ANSWER, context=context)
        words = turn.written.split()
        history = history.with_exchange(question, " ".join(words[: round(heard * len(words))]))
    return costs[1:]


@pytest.mark.parametrize("heard", [1.0, 0.5])
async def test_from_the_second_turn_on_only_the_users_words_are_computed(
    roomy: Launched, heard: float
) -> None:
    system = f"{heard} Answer in one short sentence. " + "Be kind, be brief, be clear, and be right. " * 40
    costs = await conversation(Served(roomy), system, ahead=True, heard=heard)
    assert all(total > 500 for _, total in costs)
    # A question of about eight words and what the chat template puts around it. Spoken over, the rest of the
    # answer is no part of the conversation any more, and what follows it neither.
    assert all(computed <= 32 for computed, _ in costs), costs


async def test_a_prefill_computes_what_the_next_request_then_finds(roomy: Launched) -> None:
    engines = Served(roomy)
    history = History(12).with_exchange("What is 98.6?", "A number: 98.6 °F is 37 °C.\nQuite warm, isn't it?")
    asked = prompt("A prompt of this test alone. " * 20, history.exchanges, "")
    usage = await prefill(asked, engines, ANSWER)
    assert isinstance(usage, Usage)
    assert usage.cached_tokens is not None
    assert usage.prompt_tokens is not None
    assert usage.prompt_tokens - usage.cached_tokens > 100
    turn, _ = await answered(
        engines, history, "And in winter?", Context(), system="A prompt of this test alone. " * 20
    )
    assert turn.prompt_tokens is not None
    assert turn.cached_tokens is not None
    assert turn.prompt_tokens - turn.cached_tokens <= 16


FORM = form_of(
    {
        "type": "object",
        "properties": {
            "intent": {"enum": ["weather", "time", "other"]},
            "place": {"type": "string", "maxLength": 40},
            "keep": {"enum": ["on", "end"]},
        },
        "required": ["intent", "keep"],
    },
    instruction='Write one JSON object. Its "say" is what you say aloud. Then fill in the others: {slots}',
    max_tokens=96,
    longest_say=120,
)


async def test_a_form_is_said_first_and_filled_in_while_it_is_said(roomy: Launched) -> None:
    turn = Turn(TurnId(1), "test", datetime.now(UTC))
    history = [Exchange("Hello.", "Hello, how can I help you?")]
    asked = prompt("You are a voice assistant.", history, "What is the weather in Paris?", form=FORM)
    streamed = []
    async for clause in respond(
        turn, asked, Served(roomy), "en", 64, time.monotonic_ns, context=Context(), form=FORM
    ):
        assert clause.spoken
        assert "{" not in clause.written
        assert turn.slots is None, "the slots come after what is said"
        streamed.append(turn.streamed)
    assert turn.slots is not None, turn.cause
    assert turn.slots["intent"] in {"weather", "time", "other"}
    assert turn.slots["keep"] in {"on", "end"}
    assert "say" not in turn.slots
    assert turn.llm_calls == 1
    assert streamed[-1] <= turn.streamed - 6, "the last clause does not wait for the slots"
