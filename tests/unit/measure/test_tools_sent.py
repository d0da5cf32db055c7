"""Whether a server reads the field ``tools``; told by how long its prompts are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from ondam.errors import EngineError
from ondam.measure.tools_sent import reads_tools
from ondam.pipeline.ports import Message, Token, Usage


@dataclass
class Counting:
    """A responder whose prompts have so many tokens, or which refuses them."""

    tokens: int | None = None
    error: str | None = None
    context_tokens: int = 0

    async def respond(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None = None
    ) -> AsyncGenerator[Token | Usage, None]:
        assert max_tokens == 1
        if self.error:
            raise EngineError(self.error, address="x", status=400, reason="?", tools="book")
        yield Token("I")
        yield Usage(prompt_tokens=self.tokens)


@pytest.mark.parametrize(
    ("sent", "bare", "reads"),
    [
        (Counting(90), Counting(33), True),
        (Counting(33), Counting(33), False),
        (Counting(None), Counting(None), True),
        (Counting(error="llm_refused"), Counting(33), False),
        (Counting(error="llm_tool_call"), Counting(33), True),
    ],
    ids=["longer", "as long", "not counted", "refused", "called"],
)
async def test_a_prompt_is_longer_where_its_tools_are_read(
    sent: Counting, bare: Counting, reads: bool
) -> None:
    assert await reads_tools(sent, bare, "Be brief.") is reads


async def test_an_engine_that_is_down_is_no_answer() -> None:
    with pytest.raises(EngineError, match="failed"):
        await reads_tools(Counting(error="llm_failed"), Counting(33), "Be brief.")
