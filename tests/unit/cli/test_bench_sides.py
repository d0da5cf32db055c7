"""Two daemons are two sides, whether or not their own conditions tell them apart."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.control.fake_daemon import turn as wire_turn

from ondam.cli.bench.profile import two_ways
from ondam.cli.bench.run import Bench, Moment
from ondam.measure.bench import Run
from ondam.places import places

NO_FILE = Path("/nonexistent/config.toml")


def told(names: tuple[str, str]) -> dict[str, Any]:
    """What is printed of a run on two daemons whose conditions are called so."""
    sides = two_ways(NO_FILE, {}, ("shipped", {}), ("b", {"llm": {"idle_timeout_s": 3.0}}))
    bench = Bench(places(), sides, "en", [], 1, 0, 0, {}, alone=True, folder=NO_FILE)
    statuses = [
        {
            "conditions": {"name": name, "cores": 2, "daemon_rss_mib": 150.0},
            "engines": [{"name": "x", "rss_mib": 50.0}],
        }
        for name in names
    ]
    rows = [
        {**wire_turn(), "clip": "a.wav", "conditions": name} | {"cut_short": False, "misheard": False}
        for name in names
    ]
    run = Run(turns=rows[:1], against=rows[1:])
    return bench._told(run, statuses, Moment(datetime.now().astimezone(), 0.1, None))


def test_sides_whose_daemons_tell_no_difference_have_conditions_of_their_own() -> None:
    made = told(("one", "one"))
    a, b = made["conditions"], made["against"]["conditions"]
    assert (a["set"], b["set"]) == ({"llm.idle_timeout_s": "10.0"}, {"llm.idle_timeout_s": "3.0"})
    assert len({a["name"], b["name"], "one"}) == 3
    assert [side["turns"][0]["conditions"] for side in (made, made["against"])] == [a["name"], b["name"]]


def test_where_they_do_the_names_are_the_journals() -> None:
    made = told(("one", "other"))
    assert "set" not in made["conditions"]
    assert [side["turns"][0]["conditions"] for side in (made, made["against"])] == ["one", "other"]


@pytest.mark.parametrize("side", ["a", "b"])
def test_what_both_sets_hold_is_told(side: str) -> None:
    memory = told(("one", "other"))["conditions"]["run"]["memory_mib"]
    assert memory[side] == {"daemon": 150.0, "x": 50.0}
