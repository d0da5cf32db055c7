"""``ondam bench`` on engines that only wait: real processes, real sockets, a daemon of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from ondam.measure.distribution import is_answered
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

STUB = "stt=100,ttft=100,clause=180,tts=100"
CHAIN_MS = 480.0


IN_BACKGROUND = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
"""As a shell's script starts a job: Ctrl-C in the terminal is not for it."""


def bench(house: House, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    command = [*prefix, sys.executable, "-m", "ondam", "bench", "--language", "en", "--stub", STUB]
    command += arguments
    return subprocess.Popen(
        command,
        env={**os.environ, **house.environ, "ONDAM_HOME": str(house.home), "ONDAM_LANGUAGE": "en"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def family(process: subprocess.Popen[bytes], least: int) -> list[psutil.Process]:
    """Its descendants, once there are at least so many: the daemon and three stubs."""
    deadline = time.monotonic() + 60
    while len(found := psutil.Process(process.pid).children(recursive=True)) < least:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


async def until_a_turn_was_answered(house: House) -> None:
    """With the second on its way nobody waits for the first any more."""
    await house.ready()
    async with house.client() as client:
        while (await client.status())["turns"] < 2:
            await asyncio.sleep(0.1)


def test_stub_engines_measure_the_daemon_alone(tmp_path: Path) -> None:
    house, plot = House(tmp_path), tmp_path / "run.svg"
    process = bench(house, "--turns", "2", "--settle", "1", "--against", "drafts.most_per_turn=0", "--json",
                    "--plot", str(plot))  # fmt: skip
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()
    told = json.loads(out)
    assert all(is_answered(turn) for turn in told["turns"] + told["against"]["turns"])
    named = [{turn["conditions"] for turn in side["turns"]} for side in (told, told["against"])]
    assert [len(names) for names in named] == [1, 1], "each side under conditions of its own"
    assert named[0] != named[1]
    assert told["failed"] == told["cut_short"] == told["raw_failed"] == 0
    assert told["engines_own_ms"]["p50"] == CHAIN_MS
    # The stubs take no less than they say, without the daemon and with it.
    assert CHAIN_MS <= told["engine_sum_ms"]["p50"] < CHAIN_MS + 150
    assert told["first_audio_ms"]["p50"] > CHAIN_MS
    # Without drafts the chain begins at the endpoint; with them it began 130 ms earlier.
    assert told["difference_ms"]["p50"] > 50
    heard = {turn["transcript"] for turn in told["turns"]}
    assert len(heard) == 2, "what the stub hears depends on how much it is given"
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


@pytest.mark.slow
def test_other_engines_are_compared_side_by_side_with_a_daemon_each(tmp_path: Path) -> None:
    house = House(tmp_path)
    process = bench(house, "--turns", "1", "--settle", "0", "--ab", "shipped", "llm.max_tokens=20", "--json")
    began = family(process, 5)
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()
    told = json.loads(out)
    other = told["against"]
    assert [told["conditions"]["max_tokens"], other["conditions"]["max_tokens"]] == [64, 20]
    assert told["conditions"]["run"]["engines_resident"] == "both sets at once"
    memory = told["conditions"]["run"]["memory_mib"]
    assert memory["a"]["daemon"] > 50 < memory["b"]["daemon"], "a daemon each"
    assert len(told["conditions"]["run"]["interleaved"]) == 4
    sides = (told["turns"][0], other["turns"][0])
    assert sides[0]["conditions"] == told["conditions"]["name"] != sides[1]["conditions"]
    assert sides[0]["clip"] == sides[1]["clip"]
    assert all(is_answered(turn) for turn in sides)
    assert other["engine_sum_ms"]["n"] == 1, "each side's engines alone as well"
    assert told["comparison"]["first_audio_ms"]["reason"] == "too_few"
    _, alive = psutil.wait_procs(began, timeout=10)
    assert not alive


@pytest.mark.parametrize(("number", "prefix"), [(signal.SIGINT, ()), (signal.SIGTERM, IN_BACKGROUND)])
def test_interrupted_it_ends_with_its_daemon_and_its_stubs(
    tmp_path: Path, number: signal.Signals, prefix: tuple[str, ...]
) -> None:
    house = House(tmp_path)
    process = bench(house, "--turns", "1000", "--settle", "0", "--json", prefix=prefix)
    try:
        began = family(process, 4)
        asyncio.run(until_a_turn_was_answered(house))
        process.send_signal(number)
        out, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    told = json.loads(out)
    assert told["stopped"]["code"] == "bench_interrupted"
    assert told["first_audio_ms"]["n"] == len(told["turns"]) >= 1, "what was measured is kept"
    assert b"Traceback" not in errors
    assert not [one for one in began if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not house.places.control_socket.exists()


def test_killed_it_takes_its_daemon_and_its_stubs_along(tmp_path: Path) -> None:
    process = bench(House(tmp_path), "--turns", "1000", "--settle", "0")
    began = family(process, 4)
    process.kill()
    process.communicate(timeout=20)
    _, alive = psutil.wait_procs(began, timeout=10)
    assert not alive
