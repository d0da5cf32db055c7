"""A form: data that the model fills in beside what it says, in one answer.

The answer is one JSON object that obeys a schema of the user's. Its first property ``say`` is spoken as it
comes; the others, the *slots*, follow while it is being said. See docs/forms.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import from_json

SAY = "say"

SLOTS_IN_INSTRUCTION = "{slots}"
"""Where an instruction wants the slots; at its end where it does not say."""

LOCAL = "#"
"""How a reference inside the schema begins. Any other would have to be fetched from somewhere."""


_OPENING = re.compile(
    r"[\s\ufeff]*(?P<reasoning><(?P<tag>think|thinking)>.*?</(?P=tag)>\s*)?(?:```[a-z]*\s*)?",
    re.DOTALL | re.IGNORECASE,
)
_CLOSING = re.compile(r"\s*```\s*$")
"""What a server that enforces nothing lets a model write around its object."""


class BrokenForm(ValueError):
    """What was given cannot be used as a form. ``code`` and ``facts`` are those of a message ``value_…``."""

    def __init__(self, code: str, **facts: str) -> None:
        super().__init__(code, facts)
        self.code = code
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Form:
    """What a server is to enforce, and what the model is told of it."""

    schema: Mapping[str, Any]
    """The user's JSON Schema with ``say`` first: servers let the model write properties in this order."""
    instruction: str
    """Ends the system prompt. The same text in every request, so that the engine's prompt cache holds."""
    max_tokens: int
    """For the slots, over what the spoken answer may have."""
    longest_say: int
    """Characters after which the server ends what is said, so that there is room for the slots; 0: never."""
    validator: Any
    """``jsonschema``'s, which has no types. Knows the schema alone, and fetches nothing."""


@dataclass(frozen=True, slots=True)
class Filled:
    """An answer at its end: the slots, or the code of the message that says why there are none."""

    slots: dict[str, Any] | None
    problem: str | None = None
    detail: str = ""
    """For the log: where and why. Holds words of the answer."""


def form_of(given: Mapping[str, Any], *, instruction: str, max_tokens: int, longest_say: int = 0) -> Form:
    """The form of a JSON Schema (draft 2020-12, or the one its ``$schema`` names). Raises BrokenForm.

    ``instruction`` is told to the model with the slots in the place of ``{slots}``. ``longest_say`` is for a
    schema that bounds ``say`` by no ``maxLength`` of its own; 0: not at all.
    """
    # 170 ms and 9 MiB, for those alone who have a form.
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    slots = given.get("properties")
    if given.get("type") != "object" or not isinstance(slots, Mapping):
        raise BrokenForm("form_not_an_object")
    if not slots.keys() - {SAY}:
        raise BrokenForm("form_without_slots")
    said = slots.get(SAY, {"type": "string"})
    if not isinstance(said, Mapping) or said.get("type") != "string":
        raise BrokenForm("form_say_not_text")
    checker = validator_for(given, default=Draft202012Validator)
    try:
        checker.check_schema(given)
    except SchemaError as error:
        raise BrokenForm("form_schema_broken", where=error.json_path, reason=error.message) from error
    for where, reference in _references(given):
        if not reference.startswith(LOCAL):
            raise BrokenForm("form_reference_outside", where=where, reference=reference)

    slots = {name: about for name, about in slots.items() if name != SAY}
    if longest_say:
        said = {"maxLength": longest_say, **said}
    required = [name for name in given.get("required", []) if name != SAY]
    schema = {
        # Data that nobody asked for is no data. Whoever wants it can say so.
        "additionalProperties": False,
        **given,
        "properties": {SAY: said, **slots},
        "required": [SAY, *required],
    }
    told = json.dumps(slots, ensure_ascii=False, separators=(",", ":"))
    if SLOTS_IN_INSTRUCTION not in instruction:
        instruction = f"{instruction} {SLOTS_IN_INSTRUCTION}"
    validator = checker(schema, registry=Registry())
    told = instruction.replace(SLOTS_IN_INSTRUCTION, told)
    return Form(schema, told, max_tokens, said.get("maxLength", 0), validator)


def _references(schema: object, where: str = "$") -> Iterator[tuple[str, str]]:
    """Every reference to another schema, with its place."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(value, str):
                yield f"{where}.{key}", value
            else:
                yield from _references(value, f"{where}.{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from _references(value, f"{where}[{number}]")


class Filling:
    """One answer on its way: what it says as it comes, and its slots at the end.

    An answer that is no JSON object comes from a server that enforces nothing: it is said as it is, and so is
    reasoning before the object, which the filters after this leave out.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self._before = ""
        self._json = ""
        self._said = 0
        self._plain = False
        self.whole = False
        """Nothing more will be said: what comes now are slots."""
        self.cut = False
        """What is said was ended by the form and not by the model: perhaps in the middle of a sentence."""

    def feed(self, chunk: str) -> str:
        """What ``chunk`` adds to what is said. The same in all, however the answer is cut into chunks."""
        if self._plain:
            return chunk
        before = ""
        if not self._json:
            self._before += chunk
            opening = _OPENING.match(self._before)
            chunk = self._before[opening.end() :] if opening else self._before
            if not chunk.startswith("{"):
                self._plain = not _may_open(chunk)
                return self._before if self._plain else ""
            before = (opening and opening["reasoning"]) or ""
        self._json += chunk
        if self.whole:
            return ""
        sound = self._sound()
        # Partial strings are given by the one and left out by the other: that tells where one has ended.
        # Half a character ("\ud83d") is given by neither. Both take less than 1 µs for a long answer.
        said = _said(self._json[:sound], "trailing-strings")
        self.whole = sound < len(self._json) or _said(self._json, True) is not None
        new = said[self._said :] if said else ""
        self._said += len(new)
        self.cut = self.whole and 0 < self._form.longest_say <= self._said
        return before + new

    def _sound(self) -> int:
        """How much of the answer is, or may still become, JSON."""
        for end in range(len(self._json), 0, -1):
            try:
                from_json(self._json[:end], allow_partial="trailing-strings", cache_strings="none")
            except ValueError:
                continue  # broken in the latest chunk; what stands before that can be said
            return end
        return 0

    def finish(self) -> Filled:
        """The slots, checked against the schema."""
        if self._plain:
            return Filled(None, "form_not_kept", "no JSON object")
        try:
            found = from_json(_CLOSING.sub("", self._json), allow_inf_nan=False)
        except ValueError as error:
            return Filled(None, "form_incomplete", str(error))
        for wrong in self._form.validator.iter_errors(found):
            return Filled(None, "form_not_kept", f"{wrong.json_path}: {wrong.message}")
        return Filled({name: value for name, value in found.items() if name != SAY})


def _may_open(text: str) -> bool:
    """Whether an object may still come after ``text``, which begins as reasoning or a fence does."""
    folded = text.lower()
    return folded.startswith(("<think>", "<thinking>", "```")) or any(
        opening.startswith(folded) for opening in ("<thinking>", "<think>", "```")
    )


def _said(text: str, partial: Literal[True, "trailing-strings"]) -> str | None:
    if not text:
        return None
    said = from_json(text, allow_partial=partial, cache_strings="none").get(SAY)
    return said if isinstance(said, str) else None
