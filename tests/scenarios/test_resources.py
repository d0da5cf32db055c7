"""What the daemon itself costs: memory and processor while it listens, and no growth over an hour."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ondam.audio import write_wav
from ondam.types import HEARING_RATE_HZ, Audio
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(400)]

MIB = 2**20


async def test_listening_to_silence_takes_little_memory_and_little_processor(tmp_path: Path) -> None:
    silence = tmp_path / "silence.wav"
    write_wav(silence, Audio(np.zeros(HEARING_RATE_HZ, np.int16), HEARING_RATE_HZ))
    house = House(tmp_path / "home", {"language": "en"}, microphone=f"wav:{silence}")
    house.open()
    try:
        await house.ready()
        assert house.process is not None
        daemon = psutil.Process(house.process.pid)
        await asyncio.sleep(3)
        began, before = time.monotonic(), daemon.cpu_times()
        await asyncio.sleep(20)
        after = daemon.cpu_times()
        share = (after.user + after.system - before.user - before.system) / (time.monotonic() - began)
        assert daemon.memory_info().rss <= 180 * MIB
        assert share <= 0.05
    finally:
        house.close()


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [20, pytest.param(60, marks=pytest.mark.thorough)])
def test_an_hour_of_listening_does_not_grow(minutes: int) -> None:
    """In a process of its own: pytest's grows with every test that it has run."""
    command = [sys.executable, "-m", "tests.scenarios.long_listening", str(minutes)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=390, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["outcomes"] == ["answered"] * minutes
    resident = told["resident_mib"]
    # The least of some minutes: glibc may keep the last inference of a thread, 13 MiB, until the next one.
    assert min(resident[-8:]) - min(resident[4:12]) <= 2, resident
