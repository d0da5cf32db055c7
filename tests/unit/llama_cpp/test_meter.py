"""llama.cpp's ``timings`` around a server that has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ondam_engines.llama_cpp.clients import ASKING, Client, Floor
from ondam_engines.llama_cpp.meter import Chunk, Meter


class SilentFlag:
    def up(self) -> None: ...

    def down(self) -> None: ...


class ScriptedModel:
    """Evaluates a token in 10 ms and a cached one in none; the clock is its own."""

    def __init__(self, cached: int = 0) -> None:
        self.now = 5.0
        self.cached = cached
        self.broken = False
        # As in llama-cpp-python, where both are methods that an instance may replace.
        self.eval: Callable[[Sequence[int]], None] = self._eval
        self.generate: Callable[..., Iterator[int]] = self._generate

    def _eval(self, tokens: Sequence[int]) -> None:
        if self.broken:
            raise RuntimeError("llama_decode returned 2")
        self.now += 0.010 * len(tokens)

    def _generate(self, tokens: Sequence[int], **_: Any) -> Iterator[int]:
        self.eval(tokens[self.cached :])
        yield 100
        while True:
            self.eval([100])
            yield 101

    def chat(self, *, stream: bool = False, tokens: int = 2, **_: Any) -> Chunk | Iterator[Chunk]:
        made = self.generate(list(range(20)), top_k=1)
        if stream:
            return self._chunks(made, tokens)
        for _unused in range(tokens):
            next(made)
        return {"id": "a", "choices": [{"message": {"content": "hi"}}]}

    @staticmethod
    def _chunks(made: Iterator[int], tokens: int) -> Iterator[Chunk]:
        for _ in range(tokens):
            next(made)
            yield {"id": "a", "choices": [{"delta": {"content": "x"}, "finish_reason": None}]}
        yield {"id": "a", "choices": [{"delta": {}, "finish_reason": "length"}]}


def streamed(model: ScriptedModel, client: Client | None = None, **request: Any) -> list[Chunk]:
    handler = Meter(model, Floor(SilentFlag()), lambda: model.now).around(model.chat)
    token = ASKING.set(client)
    try:
        answer = handler(stream=True, **request)
        assert isinstance(answer, Iterator)
        return list(answer)
    finally:
        ASKING.reset(token)


def test_every_chunk_carries_the_times_so_far() -> None:
    first, second, last = streamed(ScriptedModel())
    assert first["timings"] == {
        "cache_n": 0,
        "prompt_n": 20,
        "prompt_ms": 200.0,
        "predicted_n": 1,
        "predicted_ms": 0.0,
    }
    assert second["timings"]["predicted_n"] == 2
    assert second["timings"]["predicted_ms"] == 10.0
    assert last["timings"] == second["timings"]
    assert first["choices"][0]["delta"] == {"content": "x"}


def test_tokens_taken_from_the_cache_are_told_apart() -> None:
    first = streamed(ScriptedModel(cached=15))[0]
    assert first["timings"]["cache_n"] == 15
    assert first["timings"]["prompt_n"] == 5
    assert first["timings"]["prompt_ms"] == 50.0


def test_usage_comes_last_and_only_when_asked_for() -> None:
    assert all(chunk["choices"] for chunk in streamed(ScriptedModel(), Client()))
    last = streamed(ScriptedModel(cached=15), Client(wants_usage=True))[-1]
    assert last["id"] == "a"
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 2,
        "total_tokens": 22,
        "prompt_tokens_details": {"cached_tokens": 15},
    }


def test_a_second_answer_is_measured_from_its_own_beginning() -> None:
    model = ScriptedModel()
    handler = Meter(model, Floor(SilentFlag()), lambda: model.now).around(model.chat)
    for _ in range(2):
        answer = handler(stream=True)
        assert isinstance(answer, Iterator)
        model.now += 3.0  # waiting for its turn is not the engine's time
        assert next(answer)["timings"]["prompt_ms"] == 200.0


def test_an_answer_in_one_piece_is_measured_too() -> None:
    model = ScriptedModel()
    answer = Meter(model, Floor(SilentFlag()), lambda: model.now).around(model.chat)(tokens=3)
    assert isinstance(answer, dict)
    assert answer["timings"]["predicted_ms"] == 20.0
    assert answer["usage"]["completion_tokens"] == 3


def test_what_the_stop_flag_ended_ends_in_silence() -> None:
    model, client = ScriptedModel(), Client()
    floor = Floor(SilentFlag())
    handler = Meter(model, floor, lambda: model.now).around(model.chat)
    token = ASKING.set(client)
    answer = handler(stream=True, tokens=5)
    ASKING.reset(token)
    assert isinstance(answer, Iterator)
    next(answer)
    floor.leave(client)
    model.broken = True
    assert list(answer) == []


def test_a_failure_that_nobody_asked_for_is_not_hidden() -> None:
    model = ScriptedModel()
    model.broken = True
    with pytest.raises(RuntimeError, match="returned 2"):
        streamed(model, Client())


def test_nothing_is_computed_for_a_client_that_left_the_queue() -> None:
    model = ScriptedModel()
    with pytest.raises(ConnectionAbortedError):
        streamed(model, Client(gone=True))
    assert model.now == 5.0


def test_a_prompt_that_is_too_long_is_told_inside_the_stream() -> None:
    def refusing(**_: Any) -> Chunk:
        raise ValueError("Requested tokens (6031) exceed context window of 4096")

    model = ScriptedModel()
    answer = Meter(model, Floor(SilentFlag()), lambda: model.now).around(refusing)(stream=True)
    assert isinstance(answer, Iterator)
    assert [chunk["error"]["message"] for chunk in answer] == [
        "Requested tokens (6031) exceed context window of 4096"
    ]
