"""``ondam bench --cold`` and ``--concurrency`` on the embedded engines, through the command."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ondam.measure.clips import clips
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(400)]


async def bench(house: House, *arguments: str) -> Any:
    """On the daemon that runs there; Any: JSON."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ondam", "bench", "--language", "en", "--json", *arguments),
        env={**os.environ, **house.environ, "ONDAM_HOME": str(house.home), "ONDAM_LANGUAGE": "en"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, out.decode() + errors.decode()
    return json.loads(out)


async def test_the_resident_recognizer_is_at_least_three_times_as_fast(resident: House) -> None:
    told = await bench(resident, "--cold", "--turns", "5")
    stt, tts = told["stt"], told["tts"]
    assert stt["times_as_long"]["n"] == tts["times_as_long"]["n"] == 5
    assert stt["times_as_long"]["median"] >= 3
    assert tts["times_as_long"]["median"] > 1
    # Most of a process goes into its start and its weights, and not into the job.
    assert stt["process_engine_ms"]["p50"] < stt["process_ms"]["p50"] / 2


async def test_several_conversations_at_once_are_all_answered_in_bounded_memory(tmp_path: Path) -> None:
    # Short questions and short answers: turns last as long as people speak.
    house = House(tmp_path / "home", {"language": "en", "llm.max_tokens": "16"})
    short = tmp_path / "clips"
    short.mkdir()
    for clip in clips("en"):
        if clip.name in {"sky.wav", "plants.wav", "moon.wav"}:
            (short / clip.name).write_bytes(clip.wav)
    house.open()
    try:
        await house.ready()
        given = ("--concurrency", "1,4", "--turns", "3", "--settle", "0", "--clips", str(short))
        told = await bench(house, *given)
    finally:
        house.close()
    steps = told["steps"]
    assert [step["sessions"] for step in steps] == [1, 4]
    assert [(step["answered"], step["failed"], step["cut_short"]) for step in steps] == [(3, 0, 0)] * 2
    assert steps[1]["turns_per_min"] > steps[0]["turns_per_min"]
    # Each request's wait for its engine is told, for every turn, and more sessions do not wait less.
    waits = [[step["waited_ms"][door] for door in ("stt", "llm", "tts")] for step in steps]
    assert all(wait["n"] == 3 for step in waits for wait in step)
    most = [max(wait["max"] for wait in step) for step in waits]
    assert most[1] > 0
    assert most[1] > most[0] - 50, most
    daemon = [step["memory_mib"]["daemon"] for step in steps]
    assert daemon[1]["after"] - daemon[0]["before"] < 60, daemon
    assert max(one["max"] for one in daemon) < 300, daemon


async def test_errors_and_latency_come_from_the_same_run(resident: House) -> None:
    told = await bench(resident, "--quality")
    heard, back = told["stt"]["without_names"], told["round_trip"]
    assert heard["failed"] == back["failed"] == 0
    assert heard["ms"]["n"] == back["first_audio_ms"]["n"] == len(told["clips"]) >= 8
    # The clips are spoken by the same voice: neither way may lose more than a word in ten.
    assert heard["wer"] < 0.1
    assert back["cer"] < 0.1
