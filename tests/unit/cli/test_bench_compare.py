"""``ondam bench compare``: two stored runs, their conditions first, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import turn as wire_turn

ENGINES = {"stt": {"name": "faster_whisper", "model": "whisper-base", "sha256": "aa", "threads": 2}}

CLIPS = [{"name": "a.wav", "sha256": "1"}, {"name": "b.wav", "sha256": "2"}]


def turns(first_audio_ms: float, count: int = 12, *, failed: int = 0) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number in range(count):
        ms = first_audio_ms * (1 + 0.01 * (number % 3))
        turn = {**wire_turn(), "clip": f"{'ab'[number % 2]}.wav", "first_audio_ms": ms, "answer_ms": 3000.0}
        made.append(turn | ({"outcome": "failed", "first_audio_ms": None} if number < failed else {}))
    return made


def stored(path: Path, rows: list[dict[str, Any]], *, seed: int = 0, **facts: Any) -> str:
    asked = {"seed": seed, "clips": facts.pop("clips", CLIPS), "prompt": facts.pop("prompt", None)}
    conditions = {"name": "c", "engines": ENGINES, "language": "en", "uptime_s": 3.0, **facts, "run": asked}
    path.write_text(json.dumps({"bench": 1, "conditions": conditions, "turns": rows}), "utf-8")
    return str(path)


def rewritten(path: str, change: Callable[[str], str]) -> None:
    Path(path).write_text(change(Path(path).read_text("utf-8")), "utf-8")


async def test_a_slower_run_is_a_regression_and_a_quicker_one_is_none(ondam: Ondam, tmp_path: Path) -> None:
    old, new = stored(tmp_path / "old", turns(600)), stored(tmp_path / "new", turns(700))
    slower = await ondam("bench", "compare", old, new, "--json")
    assert slower.code == 8
    assert slower.json["regression"] is True
    assert slower.json["comparison"]["first_audio_ms"]["verdict"] == "a"
    assert slower.json["comparison"]["first_audio_ms"]["ratio"] == pytest.approx(7 / 6, abs=0.001)
    assert slower.json["paired_by"] == "clip"
    assert (await ondam("bench", "compare", new, old)).code == 0
    assert (await ondam("bench", "compare", old, old)).code == 0


async def test_what_differs_is_told_before_any_figure(ondam: Ondam, tmp_path: Path) -> None:
    old = stored(tmp_path / "old", turns(600), version="0.1.0", seed=1)
    new = stored(tmp_path / "new", turns(601), version="0.2.0", seed=2)
    done = await ondam("bench", "compare", old, new)
    lines = done.out.splitlines()
    assert done.code == 0
    assert [line.split() for line in lines[1:3]] == [
        ["run.seed", "1", "≠", "2"],
        ["version", "0.1.0", "≠", "0.2.0"],
    ]
    assert "600" not in "".join(lines[:3])
    assert "uptime_s" not in done.out, "the moment is no condition"
    assert "No regression beyond noise." in done.out


@pytest.mark.parametrize(
    "facts",
    [
        {"engines": {"stt": ENGINES["stt"] | {"model": "whisper-small"}}},
        {"engines": {"stt": ENGINES["stt"] | {"sha256": "bb"}}},
        {"language": "ko"},
        {"prompt": {"name": "p", "sha256": "9"}},
    ],
    ids=["model", "weights", "language", "prompt"],
)
async def test_other_engines_are_not_compared_unless_one_insists(
    ondam: Ondam, tmp_path: Path, facts: dict[str, Any]
) -> None:
    old, new = stored(tmp_path / "old", turns(600)), stored(tmp_path / "new", turns(900), **facts)
    refused = await ondam("bench", "compare", old, new)
    assert refused.code == 1
    assert "--anyway" in refused.err and refused.out == ""
    assert (await ondam("bench", "compare", old, new, "--anyway")).code == 8


async def test_other_threads_are_told_and_compared(ondam: Ondam, tmp_path: Path) -> None:
    new = stored(tmp_path / "new", turns(600), engines={"stt": ENGINES["stt"] | {"threads": 1}})
    done = await ondam("bench", "compare", stored(tmp_path / "old", turns(600)), new)
    assert done.code == 0
    assert "engines.stt.threads" in done.out


async def test_other_clips_make_no_pairs(ondam: Ondam, tmp_path: Path) -> None:
    new = stored(tmp_path / "new", turns(900), clips=[{"name": "a.wav", "sha256": "3"}])
    done = await ondam("bench", "compare", stored(tmp_path / "old", turns(600)), new, "--json")
    assert (done.code, done.json["paired_by"]) == (8, None)


async def test_a_run_that_fails_more_is_a_regression_however_quick(ondam: Ondam, tmp_path: Path) -> None:
    old, new = stored(tmp_path / "old", turns(600, 24)), stored(tmp_path / "new", turns(500, 24, failed=9))
    done = await ondam("bench", "compare", old, new)
    assert done.code == 8
    assert "9 of 24 turns failed, before it was 0 of 24" in done.out


async def test_few_turns_are_no_regression_and_no_acquittal(ondam: Ondam, tmp_path: Path) -> None:
    old, new = stored(tmp_path / "old", turns(600, 4)), stored(tmp_path / "new", turns(900, 4))
    done = await ondam("bench", "compare", old, new)
    assert done.code == 0
    assert "4 settled pairs or turns are too few" in done.out


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"conditions": {}}', '{"conditions": {}, "turns": []}',
     '{"conditions": {}, "turns": [3]}',
     '{"conditions": {}, "turns": [{"outcome": "answered", "first_audio_ms": "soon"}]}', "\xff",
     '{"conditions": {}, "turns": [{"outcome": "answered", "first_audio_ms": NaN}]}'],
)  # fmt: skip
async def test_a_foreign_file_is_named_with_what_is_wrong(ondam: Ondam, tmp_path: Path, content: str) -> None:
    (tmp_path / "foreign").write_text(content, "latin-1")
    done = await ondam("bench", "compare", stored(tmp_path / "old", turns(600)), str(tmp_path / "foreign"))
    assert done.code == 1
    assert "foreign is no run of ondam bench --json" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"bench": 1', '"bench": 2'), "its format is 2"),
        (lambda text: text.replace('"bench": 1', '"mode": "concurrency"'), "a run of --concurrency"),
        (lambda text: text[: len(text) // 2], "it is no JSON"),
    ],
    ids=["of another version", "of another kind", "truncated"],
)
async def test_what_cannot_be_read_is_told_before_any_figure(
    ondam: Ondam, tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    old, new = stored(tmp_path / "old", turns(600)), stored(tmp_path / "new", turns(600))
    rewritten(new, change)
    done = await ondam("bench", "compare", old, new)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


async def test_clips_that_are_none_make_no_pairs(ondam: Ondam, tmp_path: Path) -> None:
    old = stored(tmp_path / "old", turns(600), clips=5)
    assert (await ondam("bench", "compare", old, old, "--json")).json["paired_by"] is None


async def test_a_run_that_was_stopped_is_said_to_be(ondam: Ondam, tmp_path: Path) -> None:
    old, new = stored(tmp_path / "old", turns(600)), stored(tmp_path / "new", turns(600))
    rewritten(new, lambda text: json.dumps({**json.loads(text), "stopped": {}}))
    done = await ondam("bench", "compare", old, new)
    assert f"{new} did not come to its end." in done.out


async def test_a_file_that_is_not_there_is_named(ondam: Ondam, tmp_path: Path) -> None:
    done = await ondam("bench", "compare", str(tmp_path / "absent"), str(tmp_path / "absent"))
    assert done.code == 1
    assert "absent" in done.err


async def test_a_part_that_does_not_exist_is_answered_with_the_nearest(ondam: Ondam) -> None:
    done = await ondam("bench", "compere", "a", "b")
    assert done.code == 2
    assert "compare" in done.err
