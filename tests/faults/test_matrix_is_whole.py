"""The table in docs/faults.toml and the tests beside this file know the same cases."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.faults import matrix
from tests.faults.matrix import CASES, TABLE, Ask, Trial, spoken
from tests.scenarios.house import House
from tests.unit.control.fake_daemon import turn

from ondam.control import wire
from ondam.messages import catalog

STAGES = ("stt", "llm", "tts")


def test_every_case_of_the_table_is_held_by_a_test_and_every_test_has_its_row() -> None:
    written = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_matrix_*.py"))
    held = set(re.findall(r"recovered\(\s*\"(\w+)\"", written))
    assert held == set(CASES)


def test_every_text_that_a_case_promises_is_one_of_the_products() -> None:
    for name, case in CASES.items():
        assert case["en"] and case["ko"] and case["within_s"] >= 0, name
        for code in (one for codes in case["told"] for one in codes.split("|")):
            named = {code.format(stage=stage) for stage in STAGES}
            assert named & catalog().keys(), f"{name}: {code}"


@pytest.mark.parametrize("name", ["engine_killed", "suspended"])
async def test_a_good_turn_that_comes_too_late_keeps_no_promise(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    async def late(self: Trial, ask: Ask) -> wire.Turn:
        nonlocal now
        now += 60
        return {**turn(), "outcome": "answered"}

    monkeypatch.setattr(Trial, "turn", late)
    monkeypatch.setattr(matrix, "time", SimpleNamespace(monotonic=lambda: now))
    with pytest.raises(AssertionError, match=r"after 60\.0 s: answered"):
        await Trial(House(tmp_path)).recovered(name, spoken)


@pytest.mark.parametrize("page", ["faults.md", "ko/faults.md"])
def test_each_case_is_one_line_of_the_page(page: str) -> None:
    text = (TABLE.parent / page).read_text("utf-8")
    table = re.search(r"<!-- generated: faults_\w+ -->(.*?)<!-- end -->", text, re.DOTALL)
    assert table is not None
    rows = table[1].split("\n")[4:-2]
    assert len(rows) == len(CASES)
    assert {row.count(" | ") for row in rows} == {3}
