"""Asks an OpenAI server that is not ours what it tells of itself: far less than an engine's own report.

``/v1/models`` is every server's; ``/health``, ``/version`` and ``/metrics`` are vLLM's, and llama.cpp has a
``/health``. What somebody does not have or does not give is None, and never a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import aiohttp

from ondam.clients.json_text import Json, json_object
from ondam.supervisor.readiness import http, root

LARGEST = 1024 * 1024
"""Bytes of one answer. vLLM's metrics are some 50 kB."""

LONGEST_NAME = 300
MOST_MODELS = 1000
"""Of what a server says that it has. They go into the status."""

MOST_DIGITS = 15
COUNT = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}")

CACHE = re.compile(r"^vllm:cache_config_info\{(?P<labels>.*)\} ", re.MULTILINE)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
"""Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/"""


@dataclass(frozen=True, slots=True)
class Told:
    """What one server told. None: it did not."""

    models: tuple[str, ...] = ()
    """Names to ask for."""
    context_length: int | None = None
    """Tokens, of the model that is asked for (vLLM)."""
    healthy: bool | None = None
    """False: it says itself that it cannot answer. vLLM's API outlives the engine behind it for seconds, and
    where it is told to, for good."""
    version: str | None = None
    """vLLM's."""
    kv_dtype: str | None = None
    """Type of the key/value cache, where it is not the model's own."""
    kv_blocks: int | None = None

    def as_report(self) -> dict[str, Any] | None:
        """The part of an engine's report that could be filled; None where that is nothing."""
        found: dict[str, Any] = {
            "context_length": self.context_length,
            "kv_dtype": self.kv_dtype,
            "kv_blocks": self.kv_blocks,
            "versions": {"vllm": self.version} if self.version else None,
        }
        told = {name: value for name, value in found.items() if value is not None}
        return told or None


async def inquire(address: str, model: str, known: Told | None = None) -> Told:
    """What the server at ``address`` tells. ``model``: the one that is asked for, or empty.

    ``known``: what it told before. While its models and its health stay the same, that is all it is asked.
    Raises NotYet when nobody listens, EngineError for an answer that is none. Waits without bound.
    """
    async with http(address) as (session, base):
        models = await _object(session, f"{base}/models")
        health = await _status(session, f"{root(base)}/health")
        data = models.get("data")
        cards = [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []
        told = Told(
            models=tuple(name for card in cards[:MOST_MODELS] if _shown(name := card.get("id"))),
            context_length=_context(cards, model),
            healthy={200: True, 500: False, 503: False}.get(health),
        )
        if known is not None and told == replace(known, version=None, kv_dtype=None, kv_blocks=None):
            return known
        version = await _object(session, f"{root(base)}/version")
        cache = cache_config(await _text(session, f"{root(base)}/metrics"))
    return replace(
        told,
        version=said if _shown(said := version.get("version")) else None,
        kv_dtype=kind if _shown(kind := cache.get("cache_dtype")) and kind != "auto" else None,
        kv_blocks=int(blocks) if COUNT.fullmatch(blocks := cache.get("num_gpu_blocks", "")) else None,
    )


def cache_config(metrics: str) -> Mapping[str, str]:
    """The labels of ``vllm:cache_config_info``, empty where it is not there."""
    found = CACHE.search(metrics)
    return dict(LABEL.findall(found["labels"])) if found else {}


def _shown(text: object) -> TypeGuard[str]:
    """Whether it is a name that a person can be shown."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and text.isprintable()


def _context(cards: list[dict[str, Json]], model: str) -> int | None:
    asked = [card for card in cards if card.get("id") == model] or (cards if not model else [])
    length = asked[0].get("max_model_len") if asked else None
    if not isinstance(length, int) or isinstance(length, bool):
        return None
    return length if 0 < length < 10**MOST_DIGITS else None


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url, allow_redirects=False) as response:
        return response.status


async def _text(session: aiohttp.ClientSession, url: str) -> str:
    """The body of an answer with status 200, as far as it is not too long; else nothing."""
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            return ""
        body = b""
        while len(body) < LARGEST and (more := await response.content.readany()):
            body += more
        return body.decode("utf-8", "replace")


async def _object(session: aiohttp.ClientSession, url: str) -> dict[str, Json]:
    try:
        return json_object(await _text(session, url))
    except ValueError:
        return {}  # a page, or nothing: it tells nothing that we could read
