"""A report over turns written by hand: percentiles counted again, populations apart, two modes named."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.journal.rows import FACTS, row

from ondam.cli import command
from ondam.cli.frame import run
from ondam.journal.figures import RowError, figures
from ondam.journal.marks import STAGES
from ondam.journal.report import differing, report
from ondam.journal.steady import Steadiness

STEADY = Steadiness(5, 0.1)


def percentile(values: Iterable[float], percent: float) -> float:
    """The value at the rank percent/100·(n-1), in a straight line between its neighbours."""
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def expected(values: list[float]) -> dict[str, float]:
    told = {f"p{percent}": round(percentile(values, percent), 1) for percent in (50, 90, 95, 99)}
    return {**told, "max": round(max(values), 1), "n": len(values)}


QUICK = [500.0 + 2 * (7 * n % 40) for n in range(40)]
"""500 to 578 ms, in no order."""
SLOW = [1200.0 + 3 * (7 * n % 40) for n in range(30)]
COLD = [300.0 + 10 * n for n in range(15)]
RESTED = [2000.0 + 10 * n for n in range(10)]
FAILED = 5


def hundred() -> list[dict[str, Any]]:
    """15 cold, then 70 settled in which a dropped draft makes every slow one, 10 after a rest, 5 failed."""
    rows = [row(n, ms, population="cold", settled=False) for n, ms in enumerate(COLD)]
    mixed = [(ms, 0) for ms in QUICK[30:]] + [one for n in range(30) for one in ((QUICK[n], 0), (SLOW[n], 1))]
    rows += [row(15 + n, ms, drafts={"made": 1 + d, "dropped": d}) for n, (ms, d) in enumerate(mixed)]
    rows += [row(85 + n, ms, population="after_idle", settled=False) for n, ms in enumerate(RESTED)]
    rows += [row(95 + n, outcome="failed", first_audio_ms=99_999.0) for n in range(FAILED)]
    return rows


def made(rows: list[dict[str, Any]], facts: dict[str, Any] | None = None) -> dict[str, Any]:
    told = report(map(figures, rows), {"c1": facts or FACTS}, STEADY).as_json("en")
    assert len(told["groups"]) == 1
    return dict(told["groups"][0])


def sqlite(path: Path, rows: list[dict[str, Any]]) -> Path:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TABLE turns (number INTEGER PRIMARY KEY, session TEXT, started_at TEXT, record TEXT)"
        )
        file.execute("CREATE TABLE conditions (name TEXT, facts TEXT)")
        file.executemany(
            "INSERT INTO turns (session, started_at, record) VALUES (?, ?, ?)",
            [(one["session"], one["started_at"], json.dumps(one)) for one in rows],
        )
        file.execute("INSERT INTO conditions VALUES ('c1', ?)", (json.dumps(FACTS),))
    return path


def test_a_hundred_rows_give_the_percentiles_that_are_counted_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path / "home"))
    journal = sqlite(tmp_path / "by-hand.sqlite", hundred())
    assert run(command, ["report", "--journal", str(journal), "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    kinds = group["populations"]
    assert group["turns"] == 100
    settled = kinds["settled"]
    assert settled["first_audio_ms"] == {**expected(QUICK + SLOW), "over_budget": 30}
    assert kinds["cold"]["first_audio_ms"] == {**expected(COLD), "over_budget": 0}
    assert kinds["after_idle"]["first_audio_ms"] == {**expected(RESTED), "over_budget": 10}
    whole = [ms + 3000 for ms in QUICK + SLOW]
    assert settled["answer_ms"] == {**expected(whole), "over_budget": 30}
    first_sound = [ms - 210 for ms in QUICK + SLOW]
    assert set(settled["stages_ms"]) == set(STAGES)
    # The voice took most of each of the 30 turns that were over the budget.
    assert settled["stages_ms"]["tts_first_audio"] == {**expected(first_sound), "over_budget": 30}
    assert settled["stages_ms"]["endpoint"] == {**expected([200.0] * 70), "over_budget": 0}
    assert (settled["turns"], settled["answered"], settled["unanswered"]) == (75, 70, {"failed": 5})

    assert run(command, ["report", "--journal", str(journal)]) == 0
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if "first audio" in line).split()
    figures = [percentile(QUICK + SLOW, percent) for percent in (50, 90, 95, 99)]
    assert line == ["first", "audio", "70", *(f"{ms:.0f}" for ms in (*figures, max(SLOW))), "30"]
    quick, slow = percentile(QUICK, 50), percentile(SLOW, 50)
    assert f"57 % around {quick:.0f} ms (500 to 578), 43 % around {slow:.0f} ms (1200 to 1317)" in shown
    assert "What tells them apart: drafts thrown away; slower where it is so (100 % told rightly)" in shown


def test_the_second_mode_is_named_with_its_share_and_what_makes_it() -> None:
    settled = made(hundred())["populations"]["settled"]
    assert settled["modes"] == [
        {"share": 0.571, "p50": percentile(QUICK, 50), "from": 500.0, "to": 578.0},
        {"share": 0.429, "p50": percentile(SLOW, 50), "from": 1200.0, "to": 1317.0},
    ]
    assert settled["split_by"] == {"what": "drafts_dropped", "slow": "true", "explains": 1.0}


def test_one_mode_is_not_called_two() -> None:
    rows = [row(n, ms) for n, ms in enumerate(QUICK)]
    settled = made(rows)["populations"]["settled"]
    assert (settled["modes"], settled["split_by"]) == ([], None)


def test_a_part_of_the_prompt_in_the_cache_that_explains_the_modes_is_said() -> None:
    mixed = [(ms, 40) for ms in QUICK[:20]] + [(ms, 2) for ms in SLOW[:20]]
    rows = [
        row(n, mixed[n % 2 * 20 + n // 2][0], tokens={"cached": mixed[n % 2 * 20 + n // 2][1]})
        for n in range(40)
    ]
    split = made(rows)["populations"]["settled"]["split_by"]
    assert split == {"what": "cached_share", "slow": "< 0.42", "explains": 1.0}


def restarted(pid: int, begin: int, firsts: list[float], population: str) -> list[dict[str, Any]]:
    engine = {"llama_server": {"pid": pid, "started_at": str(pid), "load_s": 2.0}}
    rows = [
        row(begin + n, ms, population=population, settled=population == "settled")
        for n, ms in enumerate(firsts)
    ]
    return [{**one, "engines": engine} for one in rows]


def test_ten_quick_turns_right_after_a_restart_are_never_settled() -> None:
    rows = [
        *restarted(1, 0, [250.0] * 10, "cold"),
        *restarted(1, 10, [600.0] * 20, "settled"),
        *restarted(2, 30, [250.0] * 10, "cold"),
        *restarted(2, 40, [600.0] * 20, "settled"),
    ]
    group = made(rows)
    kinds = group["populations"]
    assert (kinds["settled"]["first_audio_ms"]["n"], kinds["settled"]["first_audio_ms"]["p50"]) == (40, 600.0)
    assert (kinds["cold"]["first_audio_ms"]["n"], kinds["cold"]["first_audio_ms"]["max"]) == (20, 250.0)
    assert group["drifting"] == 0


def test_a_median_that_drifts_after_the_threshold_keeps_turns_out_of_the_settled_line() -> None:
    # Ten were cold by count. Ten more were counted as settled while the clock had not throttled yet.
    rows = [
        *restarted(1, 0, [250.0] * 10, "cold"),
        *restarted(1, 10, [260.0] * 10, "settled"),
        *restarted(1, 20, [600.0] * 30, "settled"),
    ]
    group = made(rows)
    settled, cold = group["populations"]["settled"], group["populations"]["cold"]
    assert settled["first_audio_ms"]["p50"] == settled["first_audio_ms"]["max"] == 600.0
    # The window in which the drift ended goes with them.
    assert (settled["first_audio_ms"]["n"], cold["first_audio_ms"]["n"], group["drifting"]) == (25, 25, 15)


def test_two_modes_in_any_order_are_no_drift() -> None:
    """A median of five jumps between two modes; one window in three did."""
    rng = np.random.default_rng(5)
    lost = 0
    for _ in range(40):
        values = rng.permutation(np.concatenate([rng.normal(450, 15, 42), rng.normal(1400, 40, 28)]))
        lost += made(restarted(1, 0, [float(value) for value in values], "settled"))["drifting"] > 0
    assert lost <= 5


def test_a_start_that_is_a_third_quicker_is_seen_among_clips_that_differ() -> None:
    rng = np.random.default_rng(5)
    passed = 0
    for _ in range(40):
        clips = 600 * (1 + 0.25 * (rng.permutation(8) / 3.5 - 1))
        firsts = [clips[n % 8] * (0.67 if n < 10 else 1) * rng.normal(1, 0.03) for n in range(60)]
        passed += made(restarted(1, 0, firsts, "settled"))["drifting"] < 10
    assert passed <= 5


def test_turns_that_do_not_say_who_answered_stay_what_they_were_recorded_as() -> None:
    rows = [{**row(n, 300.0 if n < 10 else 900.0), "engines": None} for n in range(30)]
    group = made(rows)
    assert (group["populations"]["settled"]["turns"], group["drifting"]) == (30, 0)


def test_turns_too_few_to_see_a_median_stand_still_are_not_settled() -> None:
    rows = [*restarted(1, 0, [250.0] * 9, "settled"), *restarted(2, 9, [250.0] * 9, "settled")]
    group = made(rows)
    assert (group["populations"]["settled"]["turns"], group["drifting"]) == (0, 18)
    not_looked_at = {**FACTS, "settling": {"steady_turns": 0, "steady_within": 0.1}}
    assert made(rows, not_looked_at)["populations"]["settled"]["turns"] == 18


def test_turns_of_other_conditions_are_a_report_of_their_own_and_what_differs_is_said() -> None:
    other = {**FACTS, "max_tokens": 32, "engines": {**FACTS["engines"], "stt": {"name": "stub"}}}
    rows = [row(n, 500.0) for n in range(10)] + [row(20 + n, 900.0, conditions="c2") for n in range(10)]
    told = report(map(figures, rows), {"c1": FACTS, "c2": other}, STEADY).as_json("en")
    newest, older = told["groups"]
    assert (newest["conditions"], older["conditions"]) == ("c2", "c1")
    assert newest["populations"]["settled"]["first_audio_ms"]["p50"] == 900.0
    assert older["populations"]["settled"]["first_audio_ms"]["p50"] == 500.0
    assert newest["differs"] == []
    assert {"key": "max_tokens", "a": 32, "b": 64} in older["differs"]
    assert {"key": "engines.stt.name", "a": "stub", "b": "faster_whisper"} in older["differs"]


def test_what_differs_has_dotted_keys_and_none_where_one_lacks_it() -> None:
    a = {"x": 1, "t": {"y": 2, "z": [1]}, "only": True}
    assert differing(a, {"x": 1, "t": {"y": 3, "z": [1], "w": 0}}) == [
        {"key": "only", "a": True, "b": None},
        {"key": "t.w", "a": None, "b": 0},
        {"key": "t.y", "a": 2, "b": 3},
    ]
    assert differing(a, a) == []


def test_what_the_engines_did_is_told_beside() -> None:
    rows = [row(n, drafts={"made": 2, "dropped": 1, "tokens": 7}) for n in range(10)]
    settled = made(rows)["populations"]["settled"]
    assert settled["ttft_ms"]["p50"] == 100.0
    assert settled["token_ms"]["p50"] == 10.0  # (300 - 100) ms for the 20 tokens after the first
    assert settled["tokens_per_s"]["p50"] == 100.0
    assert settled["stt_rtf"]["p50"] == 0.05  # 100 ms for 2 s
    assert settled["tts_rtf"]["p50"] == 0.1  # 300 ms for 3 s
    assert settled["context_tokens"]["max"] == 71
    assert settled["cache_hit_share"] == 0.8
    assert settled["drafts"] == {
        "made": 20,
        "dropped": 10,
        "kept": 10,
        "dropped_tokens": 70,
        "dropped_tokens_share": 0.25,  # of 280 generated
    }


def test_typed_questions_count_from_another_moment_and_stand_apart() -> None:
    typed = [row(10 + n, 150.0) for n in range(3)]
    for one in typed:
        one["marks_ms"] = {"llm_sent": 0.0}
    settled = made([row(n, 600.0) for n in range(10)] + typed)["populations"]["settled"]
    assert (settled["typed"], settled["first_audio_ms"]["n"], settled["first_audio_ms"]["max"]) == (
        3,
        10,
        600.0,
    )
    assert settled["typed_first_audio_ms"]["max"] == 150.0


def test_what_was_answered_in_writing_is_neither_failed_nor_in_a_figure() -> None:
    written = row(20) | {"first_audio_ms": None, "answer_ms": None, "marks_ms": {"llm_sent": 0.0}}
    unheard = row(21) | {"first_audio_ms": None, "answer_ms": None}
    settled = made([*(row(n) for n in range(10)), written, unheard])["populations"]["settled"]
    assert (settled["turns"], settled["answered"], settled["written"]) == (12, 10, 1)
    assert settled["unanswered"] == {"unheard": 1}


def test_an_answer_that_was_spoken_over_counts_where_it_began_and_not_where_it_ended() -> None:
    rows = [row(n) for n in range(10)]
    rows += [row(10 + n, 900.0, outcome="interrupted", answer_ms=1100.0) for n in range(2)]
    rows.append({**row(12, outcome="interrupted"), "first_audio_ms": None})
    settled = made(rows)["populations"]["settled"]
    assert (settled["turns"], settled["answered"], settled["interrupted"]) == (13, 12, 2)
    assert settled["unanswered"] == {"interrupted": 1}
    assert (settled["first_audio_ms"]["n"], settled["first_audio_ms"]["over_budget"]) == (12, 2)
    assert (settled["answer_ms"]["n"], settled["answer_ms"]["over_budget"]) == (10, 0)
    assert (settled["answer_ms"]["max"], settled["answer_s"]["n"]) == (3600.0, 10)


def test_rows_of_an_older_version_and_failed_ones_lack_most_and_are_read() -> None:
    failed = figures({"clip": "a.wav", "outcome": "failed", "first_audio_ms": None, "error": {}})
    assert (failed.answered, failed.population) == (False, "cold")
    older = row()
    for key in ("population", "conditions", "underruns", "thought", "over_budget", "engines", "power"):
        del older[key]
    assert figures(older).population == "settled"
    assert figures({**older, "settled": False}).population == "cold"


@pytest.mark.parametrize(
    "broken",
    [7, {"first_audio_ms": "soon"}, {"first_audio_ms": math.nan}, {"tokens": [1]}, {"population": "warm"}],
)
def test_what_is_no_turn_is_refused(broken: object) -> None:
    with pytest.raises(RowError):
        figures(broken)
