"""What differs between two sets of conditions, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ondam.cli.terminal import columns, say


def differences(differs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each of ``{"key", "a", "b"}``, as ``journal.conditions`` and ``bench compare`` find them."""
    return iter(columns([[f"  {one['key']}", _fact(one["a"]), "≠", _fact(one["b"])] for one in differs]))


def short(value: object) -> str:
    """As it is; a hash by its first digits."""
    shown = str(value)
    return f"sha256 {shown[:12]}" if len(shown) == 64 else shown


def _fact(value: object) -> str:
    """As a person writes it; what one side lacks is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return say("report_on" if value else "report_off")
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return short(value)
