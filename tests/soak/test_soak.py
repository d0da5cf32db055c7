"""A short soak each time; the long one is ``script/soak``. What its parts decide is tested by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.scenarios.house import House
from tests.soak.course import ALONE, KINDS, Fault, course, rounds
from tests.soak.growth import growth, over
from tests.soak.inject import INJECTORS, NotMadeError, Victim
from tests.soak.soak import grows, tracebacks
from tests.soak.verdict import verdict, verdict_of_error
from tests.unit.control.fake_daemon import turn


@pytest.mark.engines
@pytest.mark.timeout(150)
def test_a_short_soak_keeps_every_promise(tmp_path: Path) -> None:
    out = tmp_path / "soak.json"
    command = [sys.executable, "-m", "tests.soak", "--turns", "36", "--real", "4", "--faults", "9"]
    command += ["--seed", "5", "--out", str(out)]
    if os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0:
        command = ["unshare", "-m", "--propagation", "private", *command]  # disks can then be filled
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert out.exists(), ran.stderr
    result = json.loads(out.read_text())
    assert result["broken"] == [], ran.stderr
    assert (result["turns"], result["real"]["turns"]) == (36, 4)
    assert result["faults"] + result["not_made"] == 9
    assert result["faults"] > 6
    assert result["stub"]["verdicts"]["answered"] > 10


def test_a_course_is_the_same_for_a_seed_and_has_what_was_asked_for() -> None:
    planned = course("stub", 1800, 180, 7)
    assert planned == course("stub", 1800, 180, 7) != course("stub", 1800, 180, 8)
    hit = Counter(one.fault.kind for one in planned if one.fault)
    assert (len(planned), hit.total()) == (1800, 180)
    # 21 kinds take turns, so each comes 8 or 9 times.
    assert len(hit) == 21 and set(hit.values()) == {8, 9}
    assert {one.kind for one in planned} == set(KINDS["stub"]) > ALONE
    assert not any(one.fault for one in (*planned[:20], *planned[-20:]))
    assert [len(some) for some in rounds(planned[:45])] == [4] * 11 + [1]
    assert {len(some) for some in rounds(planned)} == {20}


def test_a_line_through_the_readings_sees_growth_and_no_single_peak() -> None:
    flat = [(float(n), 100.0) for n in range(0, 1000, 20)]
    assert growth(flat).share == 0
    assert growth([*flat[:30], (590.0, 900.0), *flat[30:]]).share == 0
    # From 100 by 0.1 a turn: 20 % of 980 turns do not count, so it begins at 120 and ends at 198.
    growing = growth([(float(n), 100 + n / 10) for n in range(0, 1000, 20)])
    assert (growing.first, growing.last) == pytest.approx((120.0, 198.0))
    # What is large once and then stays is no growth: caches fill while it settles.
    assert growth([(float(n), 50.0 if n < 150 else 100.0) for n in range(0, 1000, 20)]).share == 0


def test_what_falls_back_now_and_then_is_held_against_where_it_had_settled() -> None:
    # Started again twice: below the ceiling. One reading of eleven is wild, and is left out.
    assert over(100.0, [100, 99, 60, 80, 100, 60, 90, 101, 100, 99, 400]).share == pytest.approx(0.01)
    assert over(100.0, [110.0] * 12).share == pytest.approx(0.10)


def test_only_what_grew_over_five_percent_is_told_and_small_counts_may_differ_by_some() -> None:
    def found(first: float, last: float, *, judged: bool = True) -> dict[str, float]:
        return {"first": first, "last": last, "share": (last - first) / first, "judged": judged}

    told = {
        "daemon memory, MiB": found(100, 106),
        "piper memory, MiB": found(100, 104),
        "voice memory, MiB": found(100, 200, judged=False),
        "daemon tasks": found(20, 22),
        "daemon threads": found(20, 25),
    }
    assert [line.split(":")[0] for line in grows({"growth": told})] == [
        "daemon memory, MiB",
        "daemon threads",
    ]


def test_a_turn_of_which_nothing_was_heard_needs_its_reason() -> None:
    def judged(outcome: str, kind: str = "ask", seconds: float = 0.0, **facts: object) -> str:
        made = {**turn(), "outcome": outcome, "audio": {"seconds": seconds}, "fault": None, **facts}
        gone = bool(made.pop("gone", False))
        return verdict(made, kind, aloud=kind != "shown", device_gone=gone, others=False)  # type: ignore[arg-type]

    assert judged("answered", seconds=1.0) == "answered"
    assert judged("answered") == "silent"
    assert judged("answered", "shown", reply="Two.") == "answered"
    assert judged("failed", seconds=1.0, fault="excuse_llm") == "excused"
    assert judged("failed", fault="excuse_llm") == "silent"
    assert judged("failed", "shown", fault="excuse_llm") == "excused"
    assert judged("stopped", "stop") == "ended by its user"
    assert judged("stopped") == "silent"
    assert judged("unheard") == "silent"
    assert judged("unheard", gone=True) == "device gone"
    assert judged("no_speech", "noise") == "no speech"
    assert judged("no_speech", "wav") == "silent"
    assert judged("failed", seconds=1.0, fault="internal_fault", cause="internal_fault") == "silent"


def test_an_error_in_place_of_a_turn_is_one_that_a_fault_explains() -> None:
    assert verdict_of_error("nobody_heard", "say") == "told"
    assert verdict_of_error("wav_without_speech", "noise") == "no speech"
    assert verdict_of_error("wav_without_speech", "wav") == "silent"
    for surprise in ("internal_fault", "control_bad_request", "daemon_gone"):
        assert verdict_of_error(surprise, "ask") == "silent"


def test_each_traceback_of_a_log_is_told_by_what_it_ends_with() -> None:
    one = 'Traceback (most recent call last):\n  File "a.py", line 1\n    x()\nValueError\n'
    log = f"01:02 turn 1 failed\n{one}which came from:\n{one.replace('Value', 'Key')}01:03 all is well\n"
    assert tracebacks(log) == ["ValueError", "KeyError"]
    assert tracebacks("01:02 no Traceback here\n") == []


async def test_a_fault_that_finds_nothing_to_befall_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(victim: Victim, fault: Fault) -> None:
        raise NotMadeError

    async def something(victim: Victim, fault: Fault) -> None:
        pass

    monkeypatch.setattr("tests.soak.inject.INJECTORS", {"kill": nothing, "term": something})
    victim = Victim(House(tmp_path), {})
    made = [await victim.befall(Fault(kind, "stt", 0.0, 0.1)) for kind in ("kill", "term", "kill")]
    assert made == [False, True, False]
    assert (victim.injected, victim.not_made) == ({"term": 1}, {"kill": 2})
    with pytest.raises(NotMadeError):
        await INJECTORS["engine_garbage"](Victim(House(tmp_path), {"stt": "none"}), Fault("", "stt", 0, 0))
