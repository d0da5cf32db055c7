"""One chunk of a streamed chat completion, as OpenAI and llama.cpp write it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ondam.clients.json_text import (
    Json,
    count_at,
    json_object,
    list_at,
    number_at,
    object_at,
    one_line,
    raw_text_at,
    text_at,
)
from ondam.pipeline.ports import Usage

LAST = "[DONE]"
"""The data of the event after the last chunk."""


OVERFULL_KINDS = {"exceed_context_size_error", "context_length_exceeded"}
"""How llama.cpp, and OpenAI and llama-cpp-python, name a request that does not fit into the context."""

OVERFULL_WORDS = re.compile(
    r"context[ _](?:length|size|window)|maximum context|prompt (?:is )?too long|too many tokens",
    re.IGNORECASE,
)
"""How servers say so that name no kind (vLLM, TGI, proxies in front of them)."""

ROOM_IN_WORDS = re.compile(r"(?:context length is|available context size \(|context window of) ?(\d+)")


@dataclass(frozen=True, slots=True)
class Overfull:
    """A request did not fit into the server's context. Both in tokens, 0 where it did not tell."""

    room: int = 0
    prompt: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a chunk says. ``text`` may begin or end in half a character; ``error``: the server's own words."""

    text: str = ""
    engine_ms: float | None = None
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    overfull: Overfull | None = None
    """The error says that the request was too long."""
    calls: tuple[str, ...] = ()
    """Names of tools that the model calls, ``?`` for one without. Arguments are left where they are."""


def chunk(data: str) -> Chunk:
    """The chunk in an event's ``data``. ValueError when it is none."""
    body = json_object(data)
    if body.get("error") is not None:
        return Chunk(error=server_words(body), overfull=overfull(body))
    timings = object_at(body, "timings")
    prompt_ms, predicted_ms = number_at(timings, "prompt_ms"), number_at(timings, "predicted_ms")
    prompt_n, cache_n = count_at(timings, "prompt_n"), count_at(timings, "cache_n")
    told = object_at(body, "usage")
    prompt_tokens = count_at(told, "prompt_tokens")
    cached_tokens = count_at(object_at(told, "prompt_tokens_details"), "cached_tokens")
    output_tokens = count_at(told, "completion_tokens")
    if prompt_tokens is None and prompt_n is not None:
        # llama.cpp counts as prompt_n only what it had to compute.
        prompt_tokens = prompt_n + (cache_n or 0)
    text, finish_reason, reasoning = _first_choice(body)
    return Chunk(
        text,
        engine_ms=None if prompt_ms is None else prompt_ms + (predicted_ms or 0.0),
        usage=Usage(
            prompt_tokens=prompt_tokens,
            cached_tokens=cache_n if cached_tokens is None else cached_tokens,
            output_tokens=count_at(timings, "predicted_n") if output_tokens is None else output_tokens,
            prompt_ms=prompt_ms,
            predicted_ms=predicted_ms,
            finish_reason=finish_reason,
            reasoning_seen=reasoning,
        ),
        calls=_calls(body, finish_reason),
    )


def _first_choice(body: dict[str, Json]) -> tuple[str, str | None, bool]:
    choices = list_at(body, "choices")
    if not choices:
        return "", None, False
    choice = choices[0]
    if not isinstance(choice, dict):
        raise ValueError("a choice is no object")  # noqa: TRY004 - one kind of error for callers
    delta = object_at(choice, "delta")
    # llama.cpp and DeepSeek say reasoning_content, vLLM says reasoning.
    reasoning = bool(raw_text_at(delta, "reasoning_content") or raw_text_at(delta, "reasoning"))
    return raw_text_at(delta, "content") or "", text_at(choice, "finish_reason"), reasoning


CALLING = {"tool_calls", "function_call"}
"""Finish reasons of an answer that calls a tool."""


def _calls(body: dict[str, Json], finish_reason: str | None) -> tuple[str, ...]:
    choices = list_at(body, "choices")
    if not choices or not isinstance(choices[0], dict):
        return ()
    delta = object_at(choices[0], "delta")
    # OpenAI's older field.
    older: list[Json] = [{"function": delta["function_call"]}] if delta.get("function_call") else []
    called = [*list_at(delta, "tool_calls"), *older]
    named = (object_at(call, "function").get("name") if isinstance(call, dict) else None for call in called)
    names = tuple(one_line(name, 64) if isinstance(name, str) and name else "?" for name in named)
    return names or (("?",) if finish_reason in CALLING else ())


def together(before: Usage, after: Usage) -> Usage:
    """What two chunks say about the cost: the later one wins where it says anything."""
    return replace(
        before,
        **{
            name: value
            for name in ("prompt_tokens", "cached_tokens", "output_tokens", "prompt_ms", "predicted_ms")
            if (value := getattr(after, name)) is not None
        },
        finish_reason=after.finish_reason or before.finish_reason,
        reasoning_seen=before.reasoning_seen or after.reasoning_seen,
    )


def server_words(body: dict[str, Json]) -> str:
    """What an error's body says, in one line: its ``error.message``, ``error``, ``detail`` or ``message``."""
    said = body.get("error") or body.get("detail") or body.get("message")
    if isinstance(said, dict):
        said = said.get("message") or said.get("type")
    return one_line(said if isinstance(said, str) else repr(said)) if said else "?"


def overfull(body: dict[str, Json]) -> Overfull | None:
    """Whether an error's body says that the request was too long for the context, and by how much."""
    error = body.get("error")
    told = error if isinstance(error, dict) else body
    words = server_words(body)
    kinds = (told.get("type"), told.get("code"))
    if not any(isinstance(kind, str) and kind in OVERFULL_KINDS for kind in kinds) and not (
        OVERFULL_WORDS.search(words)
    ):
        return None
    found = ROOM_IN_WORDS.search(words)
    return Overfull(
        _tokens(told, "n_ctx") or (int(found[1]) if found else 0), _tokens(told, "n_prompt_tokens")
    )


def _tokens(told: dict[str, Json], key: str) -> int:
    try:
        return count_at(told, key) or 0
    except ValueError:
        return 0  # the refusal counts, its figures only help
