"""A question that no context holds: said in words that help, and the conversation goes on."""

from __future__ import annotations

import pytest

from ondam.messages import text
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]


async def test_a_question_longer_than_the_context_is_told_to_be_too_long(resident: House) -> None:
    async with resident.client() as client:
        turn = await client.ask("7 " * 9000)
        assert (turn["outcome"], turn["fault"]) == ("failed", "excuse_question_too_long")
        assert turn["cause"] == "llm_question_too_long"
        assert turn["llm_calls"] <= 2
        assert "too long" in text("excuse_question_too_long", "en")
        turn = await client.ask("What is the capital of France?")
        assert turn["outcome"] == "answered"
        assert turn["llm_calls"] == 1
