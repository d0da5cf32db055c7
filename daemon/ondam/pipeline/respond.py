"""Question to clauses: tokens are filtered and cut as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from ondam.dialog.history import Exchange
from ondam.errors import EngineError
from ondam.journal.turn import Turn
from ondam.pipeline.ports import Engines, Message, Token, Usage
from ondam.speech import Clause, ClauseStream
from ondam.types import Language, Nanoseconds


def prompt(system: str, history: Sequence[Exchange], question: str) -> list[Message]:
    """The messages of a request. The stable part comes first, so that the engine's prompt cache holds."""
    messages: list[Message] = [{"role": "system", "content": system}]
    for exchange in history:
        messages.append({"role": "user", "content": exchange.question})
        messages.append({"role": "assistant", "content": exchange.answer})
    messages.append({"role": "user", "content": question})
    return messages


LULL_S = 0.15
"""A sentence whose end only the next character would prove is spoken when none has come for so long. Several
times what a token takes, so that it never cuts where a quick model would have gone on."""


async def respond(
    turn: Turn,
    messages: Sequence[Message],
    engines: Engines,
    language: Language,
    max_tokens: int,
    clock: Callable[[], Nanoseconds],
) -> AsyncGenerator[Clause, None]:
    """The answer's clauses, each as soon as it is certain. Marks and figures go into ``turn``.

    Raises EngineError; what was yielded before stays valid.
    """
    clauses = ClauseStream(language)
    cut_off = False
    responder = engines.responder()
    turn.llm_calls += 1
    turn.reply = ""
    turn.marks.set("llm_sent", clock())
    try:
        async with (
            aclosing(responder.respond(messages, max_tokens=max_tokens)) as stream,
            aclosing(_with_lulls(stream, LULL_S)) as pieces,
        ):
            async for piece in pieces:
                if piece is None:
                    for clause in clauses.flush():
                        _note_clause(turn, turn.engine_ms.llm_last_token, clock())
                        yield clause
                    continue
                if isinstance(piece, Usage):
                    _note_usage(turn, piece)
                    cut_off = piece.finish_reason == "length"
                    continue
                turn.marks.set("llm_first_token", clock())
                if turn.engine_ms.llm_first_token is None:
                    turn.engine_ms.llm_first_token = piece.engine_ms
                turn.streamed += 1
                turn.engine_ms.llm_last_token = piece.engine_ms
                turn.reply += piece.text
                for clause in clauses.feed(piece.text):
                    _note_clause(turn, piece.engine_ms, clock())
                    yield clause
    except EngineError:
        # A sentence that waited only for proof of its end is whole all the same.
        for clause in clauses.flush():
            _note_clause(turn, None, clock())
            yield clause
        raise
    engines.answered("llm")
    if cut_off and turn.clauses:
        return  # Half a sentence at the limit is worse than none: the answer ends with its last whole clause.
    for clause in clauses.finish():
        _note_clause(turn, turn.engine_ms.llm_last_token, clock())
        yield clause


async def _with_lulls(
    stream: AsyncGenerator[Token | Usage, None], lull_s: float
) -> AsyncGenerator[Token | Usage | None, None]:
    """The same, with a None where nothing has come for ``lull_s``; one for each lull."""
    coming: asyncio.Future[Token | Usage] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(stream))
            done, _ = await asyncio.wait({coming}, timeout=lull_s)
            if not done:
                yield None
                await asyncio.wait({coming})
            try:
                piece = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield piece
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


def _note_clause(turn: Turn, engine_ms: float | None, at_ns: Nanoseconds) -> None:
    turn.clauses += 1
    turn.marks.set("first_clause", at_ns)
    if turn.clauses == 1:
        turn.engine_ms.llm_first_clause = engine_ms


def _note_usage(turn: Turn, usage: Usage) -> None:
    turn.prompt_tokens = usage.prompt_tokens
    turn.cached_tokens = usage.cached_tokens
    turn.output_tokens = usage.output_tokens
    if usage.prompt_ms is not None and usage.predicted_ms is not None:
        turn.engine_ms.llm_last_token = usage.prompt_ms + usage.predicted_ms
    if usage.reasoning_seen:
        turn.cause = "engine_thinks"
