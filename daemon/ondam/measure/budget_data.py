"""Reads ``budget.toml``: the only place where the budget touches a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from ondam.journal.marks import STAGES
from ondam.measure.budget import Figure, Knowledge, Overlap, Preset, Source, Usual, Zones
from ondam.messages import Phrase


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    """Usual ranges, zones and presets as they are shipped; their words are ``messages/budget_sources.toml``.
    KeyError or TypeError where the file is wrong."""
    table = tomllib.loads(resources.files(__package__).joinpath("budget.toml").read_text("utf-8"))
    return Knowledge(
        usual={
            stage: Usual(
                float(one["low"]), float(one["high"]), float(one["share"]), _source(one, f"usual_{stage}")
            )
            for stage in STAGES
            for one in (table["usual"][stage],)
        },
        zones=Zones(
            table["zones"]["natural_ms"],
            _words("zone_natural"),
            table["zones"]["conversational_ms"],
            _words("zone_conversational"),
        ),
        presets={name: _preset(name, one) for name, one in table["presets"].items()},
    )


def _preset(name: str, table: Mapping[str, Any]) -> Preset:
    known = {*STAGES, "at_once", "words"}
    return Preset(
        name,
        table["words"],
        stages={stage: _figure(table[stage], f"{table['words']}_{stage}") for stage in STAGES},
        overlap=Overlap(
            **{key: value for key, value in table.items() if key not in known},
            draft_source=_words(f"{table['words']}_draft"),
            rest_source=_words(f"{table['words']}_rest"),
        ),
        at_once=table["at_once"],
    )


def _figure(table: Mapping[str, Any], of: str) -> Figure:
    p95 = table.get("p95_ms")
    return Figure(
        float(table["ms"]), _source(table, of), None if p95 is None else float(p95), table.get("remedy")
    )


def _source(table: Mapping[str, Any], of: str) -> Source:
    return Source(table["kind"], table["date"], _words(of), table.get("url"))


def _words(of: str) -> Phrase:
    return Phrase(f"budget_source_{of}")
