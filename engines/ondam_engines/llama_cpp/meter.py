"""Times and counts of one answer at a time, in the form of llama.cpp's ``timings``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from ondam_engines.llama_cpp.clients import ASKING, Client, Floor

Chunk: TypeAlias = dict[str, Any]
"""A chat completion or a piece of one, as OpenAI's API writes it."""

Handler: TypeAlias = Callable[..., Chunk | Iterator[Chunk]]
"""llama-cpp-python's ``LlamaChatCompletionHandler``."""


class Model(Protocol):
    """The two methods of ``llama_cpp.Llama`` that see every token."""

    eval: Callable[[Sequence[int]], None]
    generate: Callable[..., Iterator[int]]


class Meter:
    """Sits between the chat handler and the model. The server lets one request through at a time.

    ``clock`` gives seconds.
    """

    def __init__(self, model: Model, floor: Floor, clock: Callable[[], float]) -> None:
        self._floor = floor
        self._clock = clock
        self._eval, self._generate = model.eval, model.generate
        model.eval, model.generate = self._counted_eval, self._counted_generate
        self._begin()

    def _begin(self) -> None:
        self._began = self._clock()
        self._first: float | None = None
        self._asked = 0
        self._evaluated: int | None = None
        self._predicted = 0

    def _counted_eval(self, tokens: Sequence[int]) -> None:
        # An answer's first call holds the prompt less what the cache had of it; the others hold one token.
        if self._evaluated is None:
            self._evaluated = len(tokens)
        self._eval(tokens)

    def _counted_generate(self, tokens: Sequence[int], **how: Any) -> Iterator[int]:
        self._asked = len(tokens)
        for token in self._generate(tokens, **how):
            if self._first is None:
                self._first = self._clock()
            self._predicted += 1
            yield token

    def timings(self) -> dict[str, float | int]:
        """So far: milliseconds to the first token and since; tokens from the cache, evaluated, made."""
        now = self._clock()
        first = now if self._first is None else self._first
        evaluated = self._evaluated or 0
        return {
            "cache_n": self._asked - evaluated,
            "prompt_n": evaluated,
            "prompt_ms": round((first - self._began) * 1000, 3),
            "predicted_n": self._predicted,
            "predicted_ms": round((now - first) * 1000, 3),
        }

    def usage(self) -> dict[str, Any]:
        """OpenAI's ``usage`` of the answer so far."""
        return {
            "prompt_tokens": self._asked,
            "completion_tokens": self._predicted,
            "total_tokens": self._asked + self._predicted,
            "prompt_tokens_details": {"cached_tokens": self._asked - (self._evaluated or 0)},
        }

    def around(self, handler: Handler) -> Handler:
        """``handler``, measured: ``timings`` in every chunk, and a last one with ``usage`` if wanted."""

        def measured(**request: Any) -> Chunk | Iterator[Chunk]:
            client = ASKING.get() or Client()
            if request.get("stream"):
                return self._stream(handler, client, request)
            self._take(client)
            answer = handler(**request)
            assert isinstance(answer, dict)
            return {**answer, "usage": self.usage(), "timings": self.timings()}

        return measured

    def _take(self, client: Client) -> None:
        if not self._floor.take(client):
            raise ConnectionAbortedError("the client left before its turn came")
        self._begin()

    def _stream(
        self, handler: Handler, client: Client, request: dict[str, Any]
    ) -> Generator[Chunk, None, None]:
        self._take(client)
        last: Chunk = {}
        try:
            chunks = handler(**request)
            assert isinstance(chunks, Iterator)
            for chunk in chunks:
                last = chunk
                yield {**chunk, "timings": self.timings()}
        except ValueError as error:
            # A prompt longer than the context. The headers are on their way, so it is told inside the stream,
            # where the server itself would just hang up.
            yield {"error": {"message": str(error), "type": "invalid_request_error"}}
            return
        except RuntimeError:
            # "llama_decode returned 2": the stop flag went up. Nobody is left to tell.
            if client.gone:
                return
            raise
        if client.wants_usage and last:
            yield {**last, "choices": [], "usage": self.usage(), "timings": self.timings()}
