from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ondam.supervisor import leash
from ondam.supervisor.family import Identity, marked, relatives

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's leash is Linux's")

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(60)"]


def test_the_leashed_process_becomes_the_command_itself() -> None:
    command = leash.leashed([sys.executable, "-c", "import os; print(os.getpid())"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate()[0].strip() == str(process.pid)


def test_it_dies_with_its_parent_however_that_dies() -> None:
    parent_code = f"""
import os, subprocess, sys
from ondam.supervisor.leash import leashed
child = subprocess.Popen(leashed({SLEEPER!r}), stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    with subprocess.Popen([sys.executable, "-c", parent_code], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.communicate()[0])
    end = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_parent_that_was_gone_already_is_noticed() -> None:
    command = leash.leashed(SLEEPER)
    command[command.index(str(os.getpid()))] = "1"
    assert subprocess.run(command, check=False, timeout=20).returncode == leash.ORPHANED


def test_a_command_that_does_not_exist_ends_as_in_a_shell() -> None:
    done = subprocess.run(
        leash.leashed(["/no/such"]), check=False, capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stderr) == (127, "ondam: /no/such: No such file or directory\n")


def test_where_isolation_is_required_nothing_runs_that_would_keep_a_network(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = [sys.executable, "-I", "-S", "-c", f"open({str(ran)!r}, 'w')"]
    lacking = "import sys; from ondam.supervisor import leash; leash.cut_off = lambda network: False; "
    lacking += "sys.exit(leash.main(sys.argv[1:]))"
    for refused in (
        leash.leashed(command, "open", required=True),
        # As on a system that can take nothing away.
        [sys.executable, "-c", lacking, str(os.getpid()), "none", "require", *command],
    ):
        done = subprocess.run(refused, check=False, capture_output=True, text=True, timeout=20)
        assert done.returncode == leash.NOT_CLOSED
        assert done.stderr == 'ondam: it would keep a network, and supervisor.isolation is "require"\n'
        assert not ran.exists()
    subprocess.run(leash.leashed(command, "none", required=True), check=True, timeout=20)
    assert ran.exists()


def test_an_identity_fits_one_process_and_no_later_one() -> None:
    me = Identity.of(os.getpid())
    assert me.alive and Identity.parse(str(me)) is not None
    assert not Identity(me.pid, me.born - 100).alive

    assert [Identity.parse(text) for text in ("", "x:y", "1", "1:2:3")] == [None] * 4


def test_whoever_sets_the_clock_makes_nobody_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(SLEEPER, env={}, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        leader, started = Identity.of(process.pid), psutil.boot_time()
        for jump in (0.0, 400 * 86_400.0, -86_400.0):
            # Where psutil takes the clock's part of a birth from.
            monkeypatch.setattr("psutil._pslinux.boot_time", lambda jump=jump: started + jump)
            assert leader.alive
            assert str(Identity.of(process.pid)) == str(leader)
            # It has no mark: its session alone tells whose it is.
            assert [found.pid for found in relatives(leader, {"ONDAM_ENGINE": "none"})] == [process.pid]
        process.kill()


def test_marks_are_found_in_processes_that_carry_all_of_them() -> None:
    with subprocess.Popen(SLEEPER, env={"A": "1", "B": "2"}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [found.pid for found, _ in marked({"A": "1", "B": "2"})] == [process.pid]
        assert not list(marked({"A": "1", "B": "3"}))
        process.kill()
