"""What ``ondam doctor`` finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ondam.errors import OndamError
from ondam.messages import Phrase, message, reader_language


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``next``: what to type when it is not well."""

    check: str
    ok: bool
    text: str
    next: str = ""

    @classmethod
    def told(cls, check: str, ok: bool, phrase: Phrase) -> Finding:
        """With the text and the advice of a message."""
        found = message(phrase.code, reader_language(), **phrase.facts)
        return cls(check, ok, found.text, found.next)

    @classmethod
    def of(cls, check: str, error: OndamError) -> Finding:
        """What keeps Ondam from working."""
        found = error.message(reader_language())
        return cls(check, False, found.text, found.next)


def guarded(check: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """``findings``; where looking itself fails, that as a finding: one sick corner hides no other."""
    try:
        yield from findings
    except OndamError as error:
        yield Finding.of(check, error)
    except Exception as error:  # noqa: BLE001 - who is called when nothing works must not fall over it
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        yield Finding.told(check, False, Phrase("doctor_unexpected", reason=reason))
