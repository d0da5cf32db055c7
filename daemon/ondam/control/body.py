"""What a client sent, read within bounds of size and time, and checked before anything acts on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn, TypeVar

import pydantic
from aiohttp import web
from pydantic_core import PydanticCustomError

from ondam.config.schema import Table, check
from ondam.control.wire import DeviceKind, Route, WantedMode
from ondam.errors import ConfigError, ControlError
from ondam.journal.reading import MOST, Selection, moment
from ondam.measure.budget_answer import BudgetError, Wanted, switch, wanted
from ondam.measure.budget_data import knowledge
from ondam.messages import Phrase, Phrases
from ondam.types import Language

BODY_TIMEOUT_S = 60.0
"""From the first byte of a body to the last: 64 MiB over a Unix socket take well under a second."""


def _written(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("text_blank", "nothing is written there")
    return text


Text = Annotated[str, pydantic.Field(max_length=20_000), pydantic.AfterValidator(_written)]
"""About half an hour of speech; not blank."""


class Ask(Table):
    """Body of ``wire.ASK``."""

    text: Text
    speak: bool = False


class Say(Table):
    """Body of ``wire.SAY``."""

    text: Text
    language: Language | None = None


class Listen(Table):
    """Body of ``wire.LISTEN``."""

    timeout_s: Annotated[float, pydantic.Field(gt=0, le=600)] = 30.0


class SetMode(Table):
    """Body of ``wire.MODE``."""

    mode: WantedMode


class Switch(Table):
    """Body of ``wire.SWITCH``."""

    wanted: Annotated[dict[str, Annotated[str, pydantic.Field(min_length=1)]], pydantic.Field(min_length=1)]
    keep: bool = False


class ChooseDevices(Table):
    """Body of ``wire.CHOOSE_DEVICES``: what is left out stays, null is the system's default."""

    microphone: Annotated[str, pydantic.Field(min_length=1, max_length=500)] | None = None
    speaker: Annotated[str, pydantic.Field(min_length=1, max_length=500)] | None = None
    keep: bool = False

    @property
    def wanted(self) -> dict[DeviceKind, str | None]:
        """Those that are named."""
        kinds: tuple[DeviceKind, ...] = ("microphone", "speaker")
        return {kind: getattr(self, kind) for kind in kinds if kind in self.model_fields_set}


class SetSettings(Table):
    """Body of ``wire.SET_SETTINGS``. Any: which value a key takes is the configuration's to say."""

    # Not "set" as an attribute: it would hide the builtin within this class.
    wanted: Annotated[dict[str, Any], pydantic.Field(min_length=1, max_length=100, alias="set")]
    keep: bool = False


class Speech(Table):
    """Body of ``wire.SPEECH``. What OpenAI has and we have not (``speed``, …) is ignored."""

    model_config = pydantic.ConfigDict(extra="ignore")

    input: Text
    voice: Any = None
    response_format: str = "wav"
    stream_format: str = "audio"
    language: Language | None = None


TableT = TypeVar("TableT", bound=Table)


async def read(request: web.Request, route: Route) -> bytes:
    """The whole body. ControlError when it is larger than the route allows, or dribbles in."""
    if (request.content_length or 0) > route.limit:
        raise ControlError("control_too_large", limit=route.limit)
    whole = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in request.content.iter_chunked(1 << 16):
                whole += piece
                if len(whole) > route.limit:
                    raise ControlError("control_too_large", limit=route.limit)
    except TimeoutError as error:
        raise ControlError("control_body_too_slow", seconds=BODY_TIMEOUT_S) from error
    return bytes(whole)


async def read_object(request: web.Request, route: Route) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty one."""
    return parsed(await read(request, route))


async def read_table(request: web.Request, route: Route, table: type[TableT]) -> TableT:
    """The body as ``table``; ControlError ``control_bad_request`` naming every field that is wrong."""
    values = await read_object(request, route)
    with checked_by_config():
        return check(table, values, route.path)


@contextmanager
def checked_by_config() -> Iterator[None]:
    """What the schema finds wrong with a request is the request's fault: ``control_bad_request``."""
    try:
        yield
    except ConfigError as error:
        problems = error.facts.get("problems")
        if not isinstance(problems, Phrases):
            raise
        raise ControlError("control_bad_request", reason=replace(problems, between="; ")) from error


def parsed(body: bytes) -> dict[str, Any]:
    """``body`` as a JSON object. NaN, a nesting bomb and broken UTF-8 are refused like any other nonsense."""
    if not body:
        return {}
    try:
        values = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ControlError("control_bad_request", reason=Phrase("reason_not_json", error=error)) from error
    if not isinstance(values, dict):
        raise ControlError("control_bad_request", reason=Phrase("reason_not_object"))
    return values


def whole_number(query: Mapping[str, str], name: str, otherwise: int, most: int) -> int:
    """A query parameter from 1 to ``most``."""
    given = query.get(name)
    if given is None:
        return otherwise
    # isascii: isdigit alone lets ² and ٣ through, and int() refuses the first of them.
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= most):
        raise ControlError("control_bad_request", reason=Phrase("reason_whole_number", name=name, most=most))
    return int(given)


def switched(query: Mapping[str, str], name: str) -> bool:
    """A query parameter that is 0 or 1, off where it is left out."""
    given = query.get(name, "0")
    if given not in ("0", "1"):
        raise ControlError("control_bad_request", reason=Phrase("reason_switch", name=name))
    return given == "1"


def selection(query: Mapping[str, str]) -> Selection:
    """Which turns a report is wanted of."""
    now = datetime.now(UTC)
    since, until = (_moment(query, name, now) for name in ("since", "until"))
    if since and until and since >= until:
        raise ControlError(
            "control_bad_request",
            reason=Phrase("reason_period", since=query["since"][:40], until=query["until"][:40]),
        )
    return Selection(
        since=since,
        until=until,
        session=query.get("session") or None,
        plan=query.get("plan") or None,
        most=whole_number(query, "most", MOST, 1_000_000),
    )


def budget(request: web.Request) -> Wanted:
    """Which budget is wanted. Raises BudgetError."""
    query = request.query
    return wanted(
        knowledge(),
        preset=query.get("preset") or None,
        against=query.get("against") or None,
        settings=query.getall("set", []),
        target=query.get("target"),
        drafts=switch("drafts", query.get("drafts")),
        streaming=switch("streaming", query.get("streaming")),
        speakers=query.get("load"),
        every=query.get("every"),
    )


@contextmanager
def checked_by_budget() -> Iterator[None]:
    """What cannot be a budget is the request's fault: ``control_bad_request``."""
    try:
        yield
    except BudgetError as error:
        raise ControlError("control_bad_request", reason=error.phrase) from error


def _moment(query: Mapping[str, str], name: str, now: datetime) -> datetime | None:
    given = query.get(name)
    if not given:
        return None
    try:
        return moment(given, now, end=name == "until")
    except (ValueError, OverflowError) as error:
        raise ControlError(
            "control_bad_request", reason=Phrase("reason_moment", name=name, given=repr(given)[:80])
        ) from error


def reader(request: web.Request) -> Language:
    """The language of whoever asks: Korean where Accept-Language begins so, else English."""
    return "ko" if request.headers.get("Accept-Language", "").lower().startswith("ko") else "en"


def language(given: str | None) -> Language | None:
    """``ko``, ``en``, or None where nothing was given. ``ko-KR`` is ``ko``."""
    if not given:
        return None
    match given.lower().replace("_", "-").split("-")[0]:
        case "ko" | "korean":
            return "ko"
        case "en" | "english":
            return "en"
        case _:
            raise ControlError("control_bad_request", reason=Phrase("reason_language", given=repr(given)))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
