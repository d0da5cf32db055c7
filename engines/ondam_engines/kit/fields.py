"""Reads the fields of a request that a client may have got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ondam_engines.kit.limits import Limits, RequestError


def language_of(asked: object, known: Sequence[str], default: str) -> str:
    """The primary tag of what was asked (``ko-KR`` → ``ko``), or the default. Raises RequestError."""
    if asked is None or asked == "":
        return default
    if not isinstance(asked, str):
        raise RequestError("bad_request", "a language must be a string")
    primary = asked.replace("_", "-").split("-")[0].lower()
    if primary not in known:
        raise RequestError("unsupported_language", f"no {asked[:20]!r} here, only {', '.join(known)}"[:500])
    return primary


def texts_of(data: dict[str, Any], key: str, limits: Limits) -> tuple[str, ...]:
    """A list of short texts, blank ones left out. Raises RequestError."""
    value = data.get(key) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RequestError("bad_request", f"{key} must be a list of strings")
    if len(value) > limits.names or any(len(text) > limits.name_chars for text in value):
        raise RequestError("bad_request", f"{key}: at most {limits.names} of {limits.name_chars} characters")
    return tuple(text.strip() for text in value if text.strip())
