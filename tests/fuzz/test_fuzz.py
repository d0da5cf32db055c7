"""A quick share of script/fuzz, always the same: hostile bytes at everything that reads what others send."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ondam.measure.stubs import stub_engines, stub_settings
from tests.fuzz.hostile import Hostile
from tests.fuzz.run import DELAYS, everything
from tests.fuzz.targets import AT_ONCE, Result, attack, clients, control, kit
from tests.scenarios.house import House

SEED = 20_260_131

LATER = 300.0


@pytest.fixture
def folder() -> Iterator[Path]:
    short = Path(tempfile.mkdtemp(prefix="o-"))  # a socket's path may have 107 bytes
    yield short
    shutil.rmtree(short)


def test_the_same_seed_makes_the_same_bytes_and_another_does_not() -> None:
    made = [Hostile(seed).http() + Hostile(seed).frames("ping") + Hostile(seed).sse() for seed in (7, 7, 8)]
    assert made[0] == made[1] != made[2]


def test_every_kind_of_field_case_b28_is_among_the_inputs() -> None:
    http = b"".join(Hostile(seed).http() for seed in range(1_500))
    frames = b"".join(Hostile(seed).frames("transcript") for seed in range(1_500))
    for needed in (b"[]", b"null", b'{"type": 1}', b"NaN", b"\xff\xfe", b"[" * 50_000, b"x" * 70_000):
        assert needed in frames, needed[:20]
    for needed in (b"4294967295", b'"data_length": -1', b'"payload_length": 0'):
        assert needed in frames, needed
    assert b"Content-Length: -1" in http and b"Transfer-Encoding: chunked" in http


async def test_an_error_that_no_peer_may_cause_is_told_with_its_input() -> None:
    async def one(hostile: Hostile) -> str:
        if hostile.random.random() < 0.05:
            raise LookupError("escaped")
        return "fine"

    with pytest.raises(ExceptionGroup) as caught:
        await attack(Result("x"), one, 500, 1, time.monotonic() + LATER, psutil.Process())
    assert "x: input " in caught.value.exceptions[0].__notes__[0]


async def test_memory_that_grows_without_bound_is_noticed() -> None:
    kept: list[bytes] = []

    async def one(hostile: Hostile) -> str:
        kept.append(b"\1" * (8 << 20))
        return "kept"

    with pytest.raises(AssertionError):
        await attack(Result("x"), one, AT_ONCE, 1, time.monotonic() + LATER, psutil.Process())


async def test_the_servers_of_speech_engines_answer_others_meanwhile(folder: Path) -> None:
    for result in await kit(folder, 600, SEED, time.monotonic() + LATER):
        assert result.inputs == 600
        assert result.turns > 0
        assert result.met["error"] > 100


async def test_engines_that_answer_with_anything_cost_an_error_each(folder: Path) -> None:
    for result in await clients(folder, 500, SEED, time.monotonic() + LATER):
        assert result.inputs == 500
        assert 10 <= result.met["answered"] < 480, result.met


@pytest.mark.engines  # the daemon's own models
async def test_a_daemon_goes_on_speaking_while_its_control_socket_is_attacked(folder: Path) -> None:
    async with stub_engines(folder, DELAYS):
        house = House(folder / "home", {"language": "en", **stub_settings(folder)})
        house.open()
        try:
            await house.ready()
            result = await control(house, 1_000, SEED, time.monotonic() + LATER)
        finally:
            status = house.close()
    assert (result.inputs, status) == (1_000, 0)
    assert result.turns > 0
    assert sum(count for name, count in result.met.items() if " 4" in name) > 300, result.met


@pytest.mark.engines
@pytest.mark.thorough  # the same, twenty times as much
@pytest.mark.timeout(900)
async def test_more_of_all_of_it() -> None:
    for result in await everything(20_000, SEED, 600.0):
        assert result.inputs > 100
