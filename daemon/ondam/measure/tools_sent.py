"""Whether a server makes the field ``tools`` a part of what its model reads."""

from __future__ import annotations

from contextlib import aclosing

from ondam.errors import EngineError
from ondam.pipeline.ports import Responder, Usage
from ondam.pipeline.respond import prompt

REFUSED = {"llm_refused", "llm_gave_up"}
"""How a server without the field may answer it."""


async def reads_tools(with_tools: Responder, without: Responder, system: str) -> bool:
    """Whether a prompt is longer with the tools than without.

    llama.cpp leaves them out, and says nothing, where the model's chat template knows of none: a first token
    would then cost less than in production. True as well where the server counts no tokens: nobody knows.
    Raises EngineError.
    """
    try:
        longer = await _prompt_tokens(with_tools, system)
    except EngineError as error:
        if error.code == "llm_tool_call":
            return True
        if error.code in REFUSED:
            return False
        raise
    shorter = await _prompt_tokens(without, system)
    return longer is None or shorter is None or longer > shorter


async def _prompt_tokens(responder: Responder, system: str) -> int | None:
    async with aclosing(responder.respond(prompt(system, (), "?"), max_tokens=1)) as stream:
        async for piece in stream:
            if isinstance(piece, Usage):
                return piece.prompt_tokens
    return None
