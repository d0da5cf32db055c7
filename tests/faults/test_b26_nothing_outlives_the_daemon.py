"""kill -9 of the daemon, of an engine, of its child: nothing is left, and nobody else is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.fakes.engine.rig import Rig, alive, planned, until

from ondam.places import Places, places, private_folder
from ondam.supervisor.family import INSTANCE
from ondam.supervisor.warden import Warden

ROOT = Path(__file__).parents[2]


class Daemon:
    """``small_daemon.py``, its engine, and what the engine started."""

    def __init__(self, home: Places, **options: bool) -> None:
        folders = {"ONDAM_HOME": str(home.state.parent), "XDG_RUNTIME_DIR": str(home.runtime.parent)}
        env = {**os.environ, **folders, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.faults.small_daemon", json.dumps(options)]
        self.popen = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, "the daemon said nothing"
        self.told = json.loads(line)
        assert self.told["state"] == "ready"
        self.engine = psutil.Process(self.told["engine"])
        (self.grandchild,) = self.engine.children()
        self.family = psutil.Process(self.popen.pid).children(recursive=True)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def close(self) -> None:
        self.kill()
        assert self.popen.stdout is not None
        self.popen.stdout.close()


def gone(processes: list[psutil.Process], within_s: float = 5.0) -> bool:
    end = time.monotonic() + within_s
    while any(alive(process) for process in processes) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(alive(process) for process in processes)


@pytest.fixture
def daemon(home: Places) -> Iterator[Callable[..., Daemon]]:
    begun: list[Daemon] = []

    def begin(where: Places = home, **options: bool) -> Daemon:
        begun.append(Daemon(where, **options))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()
        for process in one.family:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def test_b26_a_killed_daemon_takes_engine_and_grandchild_with_it(daemon: Callable[..., Daemon]) -> None:
    first = daemon(ignore_sigterm=True)
    assert len(first.family) == 3  # the engine, its child, the warden
    first.kill()
    assert gone([first.engine], 1.0)
    assert gone(first.family)


def test_b26_a_restart_at_once_finds_nothing_in_its_way(daemon: Callable[..., Daemon]) -> None:
    first = daemon()
    first.kill()
    second = daemon()
    assert gone(first.family)
    assert alive(second.engine) and alive(second.grandchild)


def test_b26_the_next_start_ends_what_even_the_warden_left(daemon: Callable[..., Daemon]) -> None:
    first = daemon()
    (warden,) = (p for p in first.family if p not in (first.engine, first.grandchild))
    warden.kill()
    first.kill()
    assert gone([first.engine], 1.0)
    assert alive(first.grandchild)
    second = daemon()
    assert second.told["ended"] == 1
    assert not alive(first.grandchild)
    assert alive(second.engine)


def test_b26_another_instance_is_left_alone(daemon: Callable[..., Daemon], home: Places) -> None:
    root = home.state.parent / "b"
    other_home = places({"ONDAM_HOME": str(root), "XDG_RUNTIME_DIR": str(home.state.parent)})
    other = daemon(other_home)
    first = daemon()
    first.kill()
    second = daemon()
    assert gone(first.family)
    assert all(alive(process) for process in (*other.family, *second.family))
    assert other.popen.poll() is None


def test_b26_a_stranger_with_a_known_process_id_is_left_alone(home: Places) -> None:
    from ondam.supervisor.instance import claim

    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    private_folder(home.runtime)
    (home.runtime / "engine-tts.pid").write_text(json.dumps({"pid": stranger.pid, "born": 0.0}))
    try:
        with claim(home) as swept:
            assert swept.ended == 0
            assert not (home.runtime / "engine-tts.pid").exists()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("kind", ["marked", "marks wiped off"])
async def test_b26_a_killed_engine_takes_its_children_with_it(home: Places, kind: str) -> None:
    engine = planned("llm", grandchild=kind == "marked", clean_grandchild=kind == "marks wiped off")
    async with Rig(home, engine) as rig:
        await rig.start()
        pid = rig.fleet.status()[0].pid
        assert pid is not None
        (child,) = psutil.Process(pid).children()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: rig.fleet.status()[0].restarts == 1)
        await until(lambda: rig.fleet.engine("llm") is not None)
        assert not alive(child)


async def test_b26_a_killed_grandchild_is_the_engines_own_affair(home: Places) -> None:
    async with Rig(home, planned("llm", grandchild=True)) as rig:
        await rig.start()
        pid = rig.fleet.status()[0].pid
        assert pid is not None
        (child,) = psutil.Process(pid).children()
        child.kill()
        await until(lambda: not alive(child))
        engine = rig.fleet.engine("llm")
        assert engine is not None and (engine.pid, engine.restarts) == (pid, 0)


async def test_b26_the_warden_is_replaced_when_somebody_ends_it(home: Places) -> None:
    warden = Warden(home.runtime.name)
    warden.ensure()
    first = warden.pid
    assert first is not None
    os.kill(first, signal.SIGTERM)
    warden.ensure()
    assert warden.pid == first  # it ignores what is meant for the daemon
    os.kill(first, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(first)], timeout=0)
    await until(lambda: not alive(psutil.Process(first)) if psutil.pid_exists(first) else True)
    warden.ensure()
    assert warden.pid != first
    warden.stop()
    assert INSTANCE not in os.environ
