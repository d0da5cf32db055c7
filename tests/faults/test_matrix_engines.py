"""Each engine hung, slow, lying, ending with status 0, in whole turns: told, nothing lost, soon well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from tests.fakes.engine.staffed import ENGINES, mood, staffed
from tests.faults.matrix import spoken, typed, until, watched, well
from tests.scenarios.house import House, engine

from ondam.types import Stage

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(90)]

STAGES: tuple[Stage, ...] = ("stt", "llm", "tts")


def one_and_thorough(*values: object, first: object) -> list[object]:
    """One of them each time, all of them where there is time."""
    more = (pytest.mark.thorough,)  # further values
    marks = {first: (), **{value: more for value in values if value != first}}
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks[value])
        for value in values
    ]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    home = staffed(tmp_path_factory.mktemp("faulty"))
    home.open()
    await home.ready()
    yield home
    assert home.close() == 0
    assert home.family() == []


@pytest.mark.parametrize("stage", one_and_thorough(*STAGES, first="llm"))
async def test_an_engine_that_hangs_is_excused_restarted_and_asked_again(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    await well(house)
    async with watched(house) as trial:
        with mood(house, stage, deaf=True):
            met = await trial.turn(ask)
            assert (met["outcome"], met["fault"]) == ("failed", f"excuse_{stage}")
            assert met["audio"]["seconds"] > 0.3, "the excuse is aloud"
        await trial.recovered("engine_hung", ask, stage=stage)


@pytest.mark.thorough  # for the daemon it is one that hangs, above
@pytest.mark.parametrize("stage", STAGES)
async def test_an_engine_whose_process_is_stopped_is_restarted(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    pid = engine(await well(house), ENGINES[stage])["pid"]
    assert pid is not None
    async with watched(house) as trial:
        os.kill(pid, signal.SIGSTOP)
        met = await trial.turn(ask)
        assert met["audio"]["seconds"] > 0.3, "the excuse is aloud, or the spare voice speaks"
        await trial.recovered("engine_hung", ask, stage=stage)


@pytest.mark.thorough  # tests/unit: late answers, in virtual time
@pytest.mark.parametrize("stage", STAGES)
async def test_an_engine_that_is_too_slow_is_waited_for_then_given_up(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    await well(house)
    async with watched(house) as trial:
        with mood(house, stage, slow_s=0.8):
            late = await trial.turn(ask)
            assert late["outcome"] == "answered", late
        with mood(house, stage, slow_s=9.0):
            met = await trial.turn(ask)
            assert (met["outcome"], met["audio"]["seconds"] > 0.3) == ("failed", True), "said aloud"
        await trial.recovered("engine_slow", ask, stage=stage)


LIES = ("garbage", "half", "nothing")


@pytest.mark.parametrize(("stage", "lie"), one_and_thorough(*product(STAGES, LIES), first=("llm", "garbage")))
async def test_an_answer_that_is_none_is_excused_and_costs_no_later_turn(
    house: House, stage: Stage, lie: str
) -> None:
    ask = spoken if stage == "stt" else typed
    await well(house)
    async with watched(house) as trial:
        with mood(house, stage, lie=lie):
            met = await trial.turn(ask)
            assert met["audio"]["seconds"] > 0.3, "said aloud"
            # Nothing to say, or nothing of it that sounds, is no failure: then that is said.
            assert met["outcome"] == ("no_answer" if lie == "nothing" and stage != "stt" else "failed")
        await trial.recovered("engine_lies", ask, stage=stage)


@pytest.mark.parametrize("stage", one_and_thorough(*STAGES, first="llm"))
async def test_an_engine_that_is_killed_in_the_middle_comes_back(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    pid = engine(await well(house), ENGINES[stage])["pid"]
    assert pid is not None
    async with watched(house) as trial:
        with mood(house, stage, slow_s=1.0):
            turn = asyncio.create_task(trial.turn(ask))
            await asyncio.sleep(2.0 if stage == "stt" else 0.5)
            os.kill(pid, signal.SIGKILL)
            met = await turn
        assert met["audio"]["seconds"] > 0.3, "the excuse is aloud, or the spare voice speaks"
        await trial.recovered("engine_killed", ask, stage=stage)


@pytest.mark.parametrize("stage", one_and_thorough(*STAGES, first="llm"))
async def test_an_engine_that_answers_three_times_with_what_is_none_is_started_again(
    house: House, stage: Stage
) -> None:
    ask = spoken if stage == "stt" else typed
    pid = engine(await well(house), ENGINES[stage])["pid"]
    async with watched(house) as trial:
        with mood(house, stage, lie="garbage"):
            for _ in range(3):
                assert (await trial.turn(ask))["outcome"] == "failed"
            await until(lambda: not psutil.pid_exists(pid or 0), "the engine is ended")
        await trial.recovered("engine_ill", ask, stage=stage)


@pytest.mark.parametrize("stage", one_and_thorough(*STAGES, first="llm"))
async def test_an_engine_that_leaks_is_started_again_between_two_answers(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    pid = engine(await well(house), ENGINES[stage])["pid"]
    async with watched(house) as trial:
        with mood(house, stage, leak_mib=70):
            for _ in range(2):
                assert (await trial.turn(ask))["outcome"] == "answered", "no turn pays for it"
        await until(lambda: not psutil.pid_exists(pid or 0), "the engine is ended")
        await trial.recovered("engine_leaks", ask, stage=stage)


async def test_an_engine_that_the_kernel_ends_for_its_memory_comes_back(house: House) -> None:
    pid = engine(await well(house), ENGINES["llm"])["pid"]
    assert pid is not None
    async with watched(house) as trial:
        with memory_limit(pid, 48), mood(house, "llm", leak_mib=64):
            await trial.turn(typed)
            await until(lambda: not psutil.pid_exists(pid), "the kernel has ended it")
        await trial.recovered("engine_memory_limit", typed, stage="llm")


@contextlib.contextmanager
def memory_limit(pid: int, mib: int) -> Iterator[None]:
    """The process in a control group of its own that may take so much. Skips where none can be made."""
    root = Path("/sys/fs/cgroup")
    new = (root / "cgroup.controllers").exists()
    group = (root if new else root / "memory") / f"ondam-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.max" if new else "memory.limit_in_bytes")).write_text(str(mib << 20))
        if new:
            (group / "memory.swap.max").write_text("0")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.02)


@pytest.mark.parametrize("stage", one_and_thorough(*STAGES, first="llm"))
async def test_an_engine_that_ends_in_the_middle_with_status_0_comes_back(house: House, stage: Stage) -> None:
    ask = spoken if stage == "stt" else typed
    await well(house)
    async with watched(house) as trial:
        with mood(house, stage, exit_now=0):
            met = await trial.turn(ask)
            assert (met["outcome"], met["fault"]) == ("failed", f"excuse_{stage}")
            assert met["audio"]["seconds"] > 0.3
        await trial.recovered("engine_exits_0", ask, stage=stage)
