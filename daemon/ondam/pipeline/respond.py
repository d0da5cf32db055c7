"""Question to clauses: tokens are filtered and cut as they come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from ondam.dialog.history import Exchange
from ondam.errors import EngineError, Foreign
from ondam.journal.turn import Turn
from ondam.pipeline.context import Context
from ondam.pipeline.ports import Engines, Message, Responder, Token, Usage
from ondam.speech import Clause, ClauseStream
from ondam.speech.calls import CallFilter
from ondam.speech.form import Filling, Form
from ondam.types import Language, Nanoseconds

log = logging.getLogger(__name__)


def prompt(
    system: str, history: Sequence[Exchange], question: str, *, form: Form | None = None
) -> list[Message]:
    """The messages of a request. The stable part comes first, so that the engine's prompt cache holds.

    With a ``form`` the system prompt ends in what the model has to know of it.
    """
    told = f"{system}\n\n{form.instruction}" if form else system
    messages: list[Message] = [{"role": "system", "content": told}]
    for exchange in history:
        messages.append({"role": "user", "content": exchange.question})
        messages.append({"role": "assistant", "content": exchange.answer})
    messages.append({"role": "user", "content": question})
    return messages


LULL_S = 0.15
"""A sentence whose end only the next character would prove is spoken when none has come for so long. Several
times what a token takes, so that it never cuts where a quick model would have gone on."""

QUESTION_TOKENS = 128
"""Room left for the next question when a conversation is computed ahead: what then no longer fits is left out
while the answer is being spoken, and not when the next question waits. Spoken questions have 10 to 40."""

EXCUSES = {
    "llm_question_too_long": "excuse_question_too_long",
    "llm_tool_call": "excuse_tool_call",
    "engine_switching": "excuse_switching",
}
"""What the user is told for an error of a stage where ``excuse_llm``, "ask again", would be wrong."""

PERHAPS_FULL = {"llm_context_full", "llm_refused", "llm_gave_up", "llm_cut_off"}
"""How a server without room for a request may answer it: with a refusal that says so or does not, an error in
place of a stream, or a stream that ends before a word."""


async def respond(
    turn: Turn,
    messages: Sequence[Message],
    engines: Engines,
    language: Language,
    max_tokens: int,
    clock: Callable[[], Nanoseconds],
    *,
    context: Context | None = None,
    form: Form | None = None,
) -> AsyncGenerator[Clause, None]:
    """The answer's clauses, each as soon as it is certain. Marks and figures go into ``turn``.

    ``context`` is the conversation's, shared by its turns: it leaves out what does not fit. With a ``form``
    the clauses are those of what the answer says, and at its end ``turn.slots`` is the data beside it.

    Raises EngineError; what was yielded before stays valid.
    """
    answer = _Answer(turn, language, clock, form)
    responder = engines.responder()
    turn.reply = ""
    turn.marks.set("llm_sent", clock())
    asked = _asked(turn, responder, messages, context or Context(), max_tokens, form)
    try:
        async with aclosing(asked) as stream, aclosing(_with_lulls(stream, LULL_S)) as pieces:
            async for piece in pieces:
                for clause in answer.take(piece):
                    yield clause
    except EngineError:
        # A sentence that waited only for proof of its end is whole all the same.
        for clause in answer.break_off():
            yield clause
        raise
    engines.answered("llm")
    for clause in answer.finish():
        yield clause
    if answer.called is not None:
        # A server that knows nothing of tools hands over what its model wrote to call one.
        raise EngineError("llm_tool_call", tools=Foreign(answer.called))


async def prefill(
    messages: Sequence[Message],
    engines: Engines,
    max_tokens: int,
    *,
    context: Context | None = None,
    form: Form | None = None,
) -> Usage | None:
    """Let the engine compute ahead what the next question will follow: ``prompt(system, history, "")``.

    To be called when the last token of an answer has come, with a history in which all of it was heard; the
    other arguments as for ``respond``. The empty question makes any chat template close the answer as it
    will be closed then. Cancel it before anything else is asked: the engine is free again after the batch
    that it is in. None when the engine could not do it.
    """
    context = context or Context()
    reserve = _answer_tokens(max_tokens, form) + QUESTION_TOKENS
    try:
        responder = engines.responder()
        asked = context.fitted(messages, room=responder.context_tokens, reserve=reserve)
        # One token: llama.cpp makes one of 0 as well, and other servers refuse 0.
        async with aclosing(responder.respond(asked, max_tokens=1)) as stream:
            async for piece in stream:
                if isinstance(piece, Usage):
                    context.learn(asked, piece)
                    return piece
    except EngineError as error:
        # The next turn pays for it instead, and tells if the engine is really down.
        log.info("the conversation could not be computed ahead: %s", error)
    return None


async def _asked(
    turn: Turn,
    responder: Responder,
    messages: Sequence[Message],
    context: Context,
    max_tokens: int,
    form: Form | None,
) -> AsyncGenerator[Token | Usage, None]:
    """The engine's answer; where it had no room for the request, what it answers to the shortest one."""
    reserve = _answer_tokens(max_tokens, form)
    asked = context.fitted(messages, room=responder.context_tokens, reserve=reserve)
    begun, shorter = False, None
    try:
        async with aclosing(_once(turn, responder, asked, context, reserve, form)) as stream:
            async for piece in stream:
                if isinstance(piece, Token):
                    begun = True
                elif not begun and _starved(piece):
                    shorter = context.shortened(asked, reserve=reserve)
                    if shorter is not None:
                        break
                yield piece
    except EngineError as error:
        if begun or error.code not in PERHAPS_FULL:
            raise
        if error.code == "llm_context_full":
            context.learn_room(
                asked, room=_fact(error, "context_tokens"), tokens=_fact(error, "prompt_tokens")
            )
        shorter = context.shortened(asked, reserve=reserve)
        if shorter is None:
            raise _last_word(error) from error
        log.info("asked again with less of the conversation: %s", error)
    if shorter is None:
        return
    try:
        async with aclosing(_once(turn, responder, shorter, context, reserve, form)) as stream:
            async for piece in stream:
                if isinstance(piece, Token):
                    context.leave_out(asked, shorter)
                    asked = shorter
                yield piece
    except EngineError as error:
        raise _last_word(error) from error


async def _once(
    turn: Turn,
    responder: Responder,
    messages: Sequence[Message],
    context: Context,
    max_tokens: int,
    form: Form | None,
) -> AsyncGenerator[Token | Usage, None]:
    turn.llm_calls += 1
    schema = form.schema if form else None
    async with aclosing(responder.respond(messages, max_tokens=max_tokens, schema=schema)) as stream:
        async for piece in stream:
            if isinstance(piece, Usage):
                context.learn(messages, piece)
            yield piece


def _answer_tokens(max_tokens: int, form: Form | None) -> int:
    return max_tokens + (form.max_tokens if form else 0)


def _starved(usage: Usage) -> bool:
    """Whether an answer without a word had no room for one, rather than nothing to say."""
    return not usage.reasoning_seen and (usage.finish_reason == "length" or not usage.output_tokens)


def _fact(error: EngineError, name: str) -> int:
    value = error.facts.get(name)
    return value if isinstance(value, int) else 0


def _last_word(error: EngineError) -> EngineError:
    """The engine had no room for the question alone: that can be told in words that help."""
    return EngineError("llm_question_too_long", **error.facts) if error.code == "llm_context_full" else error


class _Answer:
    """An answer on its way from tokens to clauses, and what ``turn`` remembers of it."""

    def __init__(
        self, turn: Turn, language: Language, clock: Callable[[], Nanoseconds], form: Form | None
    ) -> None:
        self._turn = turn
        self._clock = clock
        self._clauses = ClauseStream(language)
        self._filling = Filling(form) if form else None
        self._calls = CallFilter()
        self._cut_off = False

    def take(self, piece: Token | Usage | None) -> list[Clause]:
        """The clauses that ``piece`` completes. None: nothing has come for a while."""
        if piece is None:
            return self._made(self._clauses.flush(), self._turn.engine_ms.llm_last_token)
        if isinstance(piece, Usage):
            _note_usage(self._turn, piece)
            self._cut_off = piece.finish_reason == "length"
            return []
        turn = self._turn
        turn.marks.set("llm_first_token", self._clock())
        if turn.engine_ms.llm_first_token is None:
            turn.engine_ms.llm_first_token = piece.engine_ms
        turn.streamed += 1
        turn.engine_ms.llm_last_token = piece.engine_ms
        text, over = piece.text, False
        if self._filling:
            was_whole = self._filling.whole
            text = self._filling.feed(piece.text)
            over = self._filling.whole and not was_whole
        turn.reply = (turn.reply or "") + text
        # What a form's answer says is data already, and no call.
        clauses = self._clauses.feed(text if self._filling else self._calls.feed(text))
        turn.thought |= self._clauses.reasoned
        if over:
            # The slots that follow are no reason to wait with the last clause.
            rest = self._clauses.finish()
            if not (self._filling and self._filling.cut and (clauses or turn.clauses)):
                clauses += rest
        return self._made(clauses, piece.engine_ms)

    @property
    def called(self) -> str | None:
        """The tool that the answer calls in words; None where it is an answer."""
        return self._calls.called

    def break_off(self) -> list[Clause]:
        """What can be said of an answer that broke off."""
        return self._made(self._clauses.feed(self._calls.finish()) + self._clauses.flush(), None)

    def finish(self) -> list[Clause]:
        """The rest, and the slots."""
        if self._filling:
            filled = self._filling.finish()
            self._turn.slots = filled.slots
            if filled.problem:
                self._turn.cause = filled.problem
                log.warning("turn %d: the form is not filled in: %s", self._turn.id, filled.problem)
        clauses = self._made(self._clauses.feed(self._calls.finish()), self._turn.engine_ms.llm_last_token)
        self._turn.thought |= self._clauses.reasoned
        if self._cut_off and self._turn.clauses:
            # Half a sentence at the limit is worse than none: it ends with its last whole clause.
            return clauses
        return clauses + self._made(self._clauses.finish(), self._turn.engine_ms.llm_last_token)

    def _made(self, clauses: list[Clause], engine_ms: float | None) -> list[Clause]:
        turn = self._turn
        for clause in clauses:
            turn.clauses += 1
            turn.written = f"{turn.written} {clause.written}".strip()
            turn.marks.set("first_clause", self._clock())
            if turn.clauses == 1:
                turn.engine_ms.llm_first_clause = engine_ms
        return clauses


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


def _note_usage(turn: Turn, usage: Usage) -> None:
    turn.prompt_tokens = usage.prompt_tokens
    turn.cached_tokens = usage.cached_tokens
    turn.output_tokens = usage.output_tokens
    if usage.prompt_ms is not None and usage.predicted_ms is not None:
        turn.engine_ms.llm_last_token = usage.prompt_ms + usage.predicted_ms
    if usage.reasoning_seen:
        turn.thought = True
        turn.cause = "engine_thinks"
