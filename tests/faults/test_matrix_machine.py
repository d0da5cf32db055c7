"""The machine fails: disks, journal, clock, sleep, descriptors; a second daemon, a broken configuration."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from tests.fakes.engine.staffed import ENGINES, staffed
from tests.faults.matrix import rows, spoken, typed, until, watched, well
from tests.scenarios.house import House, engine

from ondam.control import wire
from ondam.errors import ConfigError

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(90)]

DISKS_MIB = {"state": 4, "state/logs": 1, "run": 1}
"""File systems of their own, where root may make them: folder below the home to size."""

DAY_S = 86_400


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def house() -> AsyncIterator[House]:
    # Short: the sockets' folder is below it.
    home = Path(tempfile.mkdtemp(prefix="ondam-"))
    mounted: list[Path] = []
    try:
        for folder, mib in DISKS_MIB.items():
            (home / folder).mkdir(parents=True)
            if _mount(home / folder, mib):
                mounted.append(home / folder)
        environ = {
            "XDG_RUNTIME_DIR": str(home / "run"),
            "PYTHONPATH": str(Path(__file__).parent / "jumping"),
            "ONDAM_TEST_CLOCK": str(home / "clock"),
        }
        found = staffed(home, environ=environ)
        found.open()
        try:
            await found.ready()
            yield found
        finally:
            status = found.close()
        assert status == 0
        assert found.family() == []
        assert "--- Logging error ---" not in found.log.read_text("utf-8"), "a full disk fills no log"
    finally:
        for mount in reversed(mounted):
            _unmount(mount)
        shutil.rmtree(home, ignore_errors=True)


def _mount(folder: Path, mib: int) -> bool:
    if os.geteuid() != 0:
        return False
    options = f"size={mib}m,mode=700"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Not a byte more fits there. Skips where it has no file system of its own."""
    if not folder.is_mount():
        pytest.skip("no file system can be made here: not root, or not allowed to mount")
    filler = folder / "filler"
    try:
        for block in (65_536, 512, 1):
            with suppress(OSError), filler.open("ab", buffering=0) as file:
                while file.write(b"\0" * block):
                    pass
        yield
    finally:
        filler.unlink()


async def test_a_full_disk_under_the_journal_costs_no_turn_and_no_row(house: House) -> None:
    await well(house)
    async with watched(house) as trial:
        with full(house.places.state):
            # SQLite may have a page left: after some turns none has.
            for _ in range(12):
                assert (await trial.turn(typed))["outcome"] == "answered"
                if "journal_turns_wait" in trial.told:
                    break
            await until(lambda: "journal_turns_wait" in trial.told, "told")
        await trial.recovered("disk_full_state", typed)
    async with house.client() as client:
        assert "journal_turns_lost" not in {fault["code"] for fault in (await client.status())["faults"]}


async def test_a_full_disk_under_the_logs_costs_their_lines_alone(house: House) -> None:
    pid = engine(await well(house), ENGINES["llm"])["pid"]
    assert pid is not None
    async with watched(house) as trial:
        with full(house.places.logs):
            os.kill(pid, signal.SIGKILL)  # its log is written to as well
            await until(lambda: "engine_back_llm" in trial.told, "an engine can be started", 10)
            assert (await trial.turn(typed))["outcome"] == "answered"
        await trial.recovered("disk_full_logs", typed)


async def test_an_engine_that_finds_no_room_for_its_socket_is_tried_until_there_is(house: House) -> None:
    pid = engine(await well(house), ENGINES["llm"])["pid"]
    assert pid is not None
    async with watched(house) as trial:
        with full(house.home / "run"):
            os.kill(pid, signal.SIGKILL)
            met = await trial.turn(typed)
            assert (met["outcome"], met["fault"]) == ("failed", "excuse_llm")
            await asyncio.sleep(2)  # more starts than an engine that ends by itself would be given
            async with house.client() as client:
                assert engine(await client.status(), ENGINES["llm"])["state"] != "failed"
        await trial.recovered("disk_full_temp", typed, stage="llm")


async def test_a_journal_that_another_program_holds_is_written_when_it_lets_go(house: House) -> None:
    await well(house)
    async with watched(house) as trial:
        await trial.turn(typed)
        await trial.nothing_lost()
        with closing(sqlite3.connect(house.places.journal)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert (await trial.turn(typed))["outcome"] == "answered"
            await until(lambda: "journal_turns_wait" in trial.told, "told")
            other.rollback()
        await trial.recovered("journal_locked", typed)


async def test_a_corrupt_journal_is_put_aside_told_and_a_new_one_begun(house: House) -> None:
    await well(house)
    async with watched(house) as trial:
        await trial.turn(typed)
        await trial.nothing_lost()
        broken = b"no journal" * 2000
        house.places.journal.write_bytes(broken)
        trial.before = (await _turns(house), 0)
        await trial.recovered("journal_corrupt", typed)
    kept = [file.read_bytes() for file in house.places.state.glob("journal.sqlite.broken-*")]
    assert broken in kept, "and what SQLite had beside it"


async def _turns(house: House) -> int:
    async with house.client() as client:
        return (await client.status())["turns"]


@pytest.mark.parametrize("jump_s", [400 * DAY_S, pytest.param(-DAY_S, marks=pytest.mark.thorough)])
async def test_a_clock_that_jumps_in_the_middle_of_a_turn_changes_no_time_and_deletes_nothing(
    house: House, jump_s: int
) -> None:
    before = await well(house)
    kept = rows(house)
    clock = house.home / "clock"
    async with watched(house) as trial:
        try:
            turn = asyncio.create_task(trial.turn(spoken))
            await asyncio.sleep(1.2)  # in the middle of the answer, or shortly before
            clock.write_text(str(jump_s))
            met = await turn
            assert met["outcome"] == "answered"
            assert met["first_audio_ms"] is not None and 0 < met["first_audio_ms"] < 5000
            after = (await trial.turn(typed))["started_at"]
            assert (after > met["started_at"]) == (jump_s > 0)
            await trial.nothing_lost()
        finally:
            clock.unlink(missing_ok=True)
        await trial.recovered("clock_jumps", typed)
    now = await well(house)
    assert rows(house) == kept + len(trial.turns), "nothing was deleted as too old"
    assert 0 < (now["uptime_s"] or 0) - (before["uptime_s"] or 0) < 60
    assert [e["pid"] for e in now["engines"]] == [e["pid"] for e in before["engines"]]


async def test_a_machine_that_slept_in_the_middle_of_a_turn_finishes_it(house: House) -> None:
    before = await well(house)
    assert house.process is not None
    async with watched(house) as trial:
        turn = asyncio.create_task(trial.turn(spoken))
        await asyncio.sleep(1.0)
        asleep = [psutil.Process(house.process.pid), *house.family()]
        try:
            for process in asleep:
                process.suspend()
            await asyncio.sleep(2.6)  # longer than an engine may leave a ping unanswered
        finally:
            for process in reversed(asleep):
                process.resume()
        assert (await turn)["outcome"] == "answered"
        await trial.recovered("suspended", typed)
    now = await well(house)
    assert [e["pid"] for e in now["engines"]] == [e["pid"] for e in before["engines"]], "nobody was restarted"


async def test_without_descriptors_a_turn_is_excused_and_no_engine_is_blamed(house: House) -> None:
    before = await well(house)
    assert house.process is not None
    pid = house.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    async with watched(house) as trial, house.client() as client:
        opened = psutil.Process(pid).num_fds()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened + 1, hard))
        try:
            # One connection, the question's own, can still be taken; none to an engine.
            met = await client.ask("What time is it?", speak=True)
            trial.turns.append(met)
            trial.told.add(met["fault"] or "")
            assert met["outcome"] == "failed" and met["fault"] in {"excuse_llm", "excuse_tts"}
            assert met["audio"]["seconds"] > 0.3, "said aloud"
            await asyncio.sleep(2.5)  # longer than an engine may leave a ping unanswered
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        await trial.recovered("descriptors_short", typed, stage="llm")
    now = await well(house)
    assert [e["pid"] for e in now["engines"]] == [e["pid"] for e in before["engines"]], "nobody was restarted"


async def test_a_second_daemon_is_refused_and_the_first_one_does_not_notice(house: House) -> None:
    before = await well(house)
    async with watched(house) as trial:
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ondam", "up", "--microphone", "none", "--speaker", "none"),
            env={**os.environ, **house.environ, "ONDAM_HOME": str(house.home), "ONDAM_LANGUAGE": "en"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await second.communicate()
        assert second.returncode == 4, said.decode()
        assert "already" in said.decode(), said.decode()
        trial.told.add("daemon_runs")
        await trial.recovered("two_daemons", typed)
    now = await well(house)
    assert [e["pid"] for e in now["engines"]] == [e["pid"] for e in before["engines"]]


async def test_a_broken_configuration_is_refused_with_all_its_problems_and_the_old_one_stays(
    house: House,
) -> None:
    before = await well(house)
    file = house.places.config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    async with watched(house) as trial:
        for broken in ('language = "xx"\n[lissten]\nmode = "open"\n', "[listen\n", "\0\xff"):
            file.write_text(broken, "utf-8")
            try:
                async with house.client() as client:
                    with pytest.raises(ConfigError) as met:
                        await client.reload()
                trial.told.add(met.value.code)
            finally:
                file.unlink()
        await trial.recovered("config_broken", typed)
    now = await well(house)
    assert (now["mode"], now["language"]) == (before["mode"], before["language"])
    assert _pids(now) == _pids(before)


def _pids(status: wire.Status) -> list[int | None]:
    return [one["pid"] for one in status["engines"]]
