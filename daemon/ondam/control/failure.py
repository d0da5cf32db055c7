"""An ``OndamError`` as JSON and back, so that the same exception is raised on both ends of the socket."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ondam import messages
from ondam.control.wire import ErrorBody, Layer
from ondam.errors import (
    AudioError,
    ConfigError,
    ControlError,
    EngineError,
    JournalError,
    ModelError,
    OndamError,
)

if TYPE_CHECKING:  # for real it would load numpy, and clients are to start quickly
    from ondam.types import Language

LAYERS: dict[Layer, type[OndamError]] = {
    "config": ConfigError,
    "control": ControlError,
    "model": ModelError,
    "engine": EngineError,
    "audio": AudioError,
    "journal": JournalError,
    "ondam": OndamError,
}

STATUSES = {
    "control_bad_request": 400,
    "control_no_sound": 400,
    "nothing_to_say": 400,
    "control_not_permitted": 403,
    "control_unknown_call": 404,
    "engine_not_running_here": 404,
    "listen_muted": 409,
    "switch_under_way": 409,
    "switch_outside": 409,
    "switch_unknown_key": 400,
    "heard_nothing": 408,
    "control_body_too_slow": 408,
    "control_too_large": 413,
    "control_sound_too_long": 413,
    "control_too_fast": 429,
    "internal_fault": 500,
    "control_too_many_clients": 503,
}
"""HTTP status by message code; any other OndamError is 503: something that the daemon needs is not well."""


def status_of(error: OndamError) -> int:
    """The HTTP status of an answer that reports ``error``."""
    return STATUSES.get(error.code, 503)


def body_of(error: OndamError, language: Language) -> ErrorBody:
    """``error`` for a client that reads ``language``."""
    said = error.message(language)
    layer: Layer = next((name for name, kind in LAYERS.items() if isinstance(error, kind)), "ondam")
    facts = {name: _fact(messages.told(value, language)) for name, value in error.facts.items()}
    return {
        "error": {"code": said.code, "text": said.text, "next": said.next, "layer": layer, "facts": facts}
    }


def raised_from(status: int, body: object) -> OndamError:
    """The exception that ``body`` reports; ``daemon_failed`` when it is none of ours."""
    if not isinstance(body, Mapping) or not isinstance(detail := body.get("error"), Mapping):
        return ControlError("daemon_failed", status=status)
    code, facts = detail.get("code"), detail.get("facts")
    kind = LAYERS.get(cast("Layer", detail.get("layer")), ControlError)
    if isinstance(code, str) and code in messages.catalog() and isinstance(facts, Mapping):
        return kind(code, **{str(name): value for name, value in facts.items()})
    # A daemon of another version: its words, in the language that was asked for.
    return kind("daemon_said", text=detail.get("text", code), next=detail.get("next", ""))


def _fact(value: object) -> object:
    """Numbers stay numbers (texts format them), everything else becomes what the text would show."""
    if isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
