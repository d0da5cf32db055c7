"""A box without a network: installed from a stick, run by systemd, and back by itself whatever ends it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bundle import box as boxes
from tests.bundle.box import Box
from tests.bundle.real import ENGINES, Made, hidden

PYTHON = f"/usr/bin/python3.{sys.version_info.minor}"

LOADS_WITHIN_S = 60.0

GIVEN_S = 5.0
"""Python is there by then; the engines, which on one core take eight seconds of it alone, are not."""

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(300),
    pytest.mark.flaky(reruns=2, reruns_delay=2),  # real time, as in tests/conftest.py
    pytest.mark.skipif(bool(boxes.possible()), reason=boxes.possible() or "it can be had"),
    # What the bundle is made for here; a confined service sees the distribution's alone.
    pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"{PYTHON} is missing"),
]

CONFIG = '[llm]\nmax_tokens = 24\n[audio]\nmicrophone = "none"\nspeaker = "none"\n'


@dataclass
class Service:
    """The service of the box; ``user``: whose, by default the system's."""

    box: Box
    user: str = ""

    def systemctl(self, *words: str) -> int:
        """Its exit status."""
        own = ["--user"] if self.user else []
        return self.box.run("systemctl", *own, *words, user=self.user).returncode

    def show(self, name: str) -> str:
        """One property."""
        own = ["--user"] if self.user else []
        shown = self.box.run("systemctl", *own, "show", "ondam", "-p", name, "--value", user=self.user)
        return shown.stdout.strip()

    def active(self) -> bool:
        """It says that it is ready."""
        return self.show("ActiveState") == "active"

    def main(self) -> int:
        """Its process, by the box's numbers; 0: none."""
        return int(self.show("MainPID"))

    def comes(self) -> float:
        """Wait until it is ready; how long that took, s."""
        took = self.box.until(self.active, LOADS_WITHIN_S)
        assert self.show("StatusText") == "ready"
        return took

    def comes_anew(self, before: int) -> float:
        """The same with another process than ``before``."""
        began = time.monotonic()
        self.box.until(lambda: self.main() not in {0, before}, LOADS_WITHIN_S)
        self.comes()
        return time.monotonic() - began


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, made: Made) -> Iterator[Box]:
    """With a stick in it, and nothing installed."""
    stick = tmp_path_factory.mktemp("stick")
    (stick / "ondam.bundle").hardlink_to(made.path)
    shutil.copy(made.signers, stick / "signers")
    there = Box(tmp_path_factory.mktemp("box"), stick)
    # What else this machine starts does not belong to it.
    there.without([*hidden(), Path("/etc/systemd/system/multi-user.target.wants")])
    try:
        there.boot()
        yield there
    finally:
        there.pull_the_plug()


@pytest.fixture(scope="module")
def installed(box: Box) -> Box:
    """With Ondam on it, from the stick alone."""
    done = box.run("tar", "-C", "/tmp", "-xf", "/media/stick/ondam.bundle", "install.py")
    assert done.returncode == 0, done.stderr
    bundle = ["/media/stick/ondam.bundle", "--allowed-signers", "/media/stick/signers"]
    done = box.run(PYTHON, "/tmp/install.py", *bundle, timeout=200)
    assert done.returncode == 0, done.stderr
    write(box, CONFIG)
    done = box.run("ondam", "service", "install", "--system", "--no-start")
    assert done.returncode == 0, done.stderr
    return box


@pytest.fixture
def service(installed: Box) -> Iterator[Service]:
    """Not yet running, as it was installed."""
    write(installed, CONFIG)
    there = Service(installed)
    yield there
    write(installed, CONFIG)  # also below a user's own
    installed.run("rm", "-rf", "/etc/systemd/system/ondam.service.d")
    there.systemctl("stop", "ondam")
    there.systemctl("reset-failed")


def write(box: Box, config: str, path: str = "/etc/ondam/config.toml") -> None:
    shell = 'mkdir -p "${2%/*}" && printf %s "$1" > "$2"'
    assert box.run("sh", "-c", shell, "sh", config, path).returncode == 0


def engines(box: Box) -> list[str]:
    """Those that run there, and whatever else an engine left behind."""
    found = box.run("pgrep", "-af", "ondam_engines|supervisor.warden").stdout
    return [line for line in found.splitlines() if "pgrep" not in line]


def status(box: Box, user: str = "") -> dict[str, object]:
    done = box.run("ondam", "status", "--json", user=user)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_it_starts_answers_reads_its_configuration_again_and_ends(
    service: Service, record_property: Callable[[str, object], None]
) -> None:
    box = service.box
    # On one core it needs more time than it is given, says so, and is left the time.
    slow = f"[Service]\nTimeoutStartSec={GIVEN_S:.0f}\nCPUAffinity=0\n"
    write(box, slow, "/etc/systemd/system/ondam.service.d/slow.conf")
    service.systemctl("daemon-reload")
    service.systemctl("--no-block", "start", "ondam")
    texts: set[str] = set()
    began = time.monotonic()
    while not service.active():
        texts.add(service.show("StatusText"))
        assert service.show("ActiveState") == "activating", box.run("journalctl", "-u", "ondam").stdout
        assert time.monotonic() - began < LOADS_WITHIN_S
        time.sleep(0.2)
    started = time.monotonic() - began
    assert started > GIVEN_S
    assert any(text.startswith("loading ") and "faster_whisper" in text for text in texts), texts
    assert service.show("StatusText") == "ready" and service.show("NRestarts") == "0"

    asked = box.run("ondam", "ask", "What is the capital of France?")
    assert asked.returncode == 0 and asked.stdout.strip(), asked.stderr
    told = status(box)
    rows = told["engines"]
    assert isinstance(rows, list) and {row["name"] for row in rows} == set(ENGINES)
    # Confined as it is, its engines still get a network of their own with nothing in it.
    assert {tuple(row["isolation"]["means"]) for row in rows} == {("namespace", "filter")}
    assert box.run("stat", "-c", "%U:%G %a", "/run/ondam/control.sock").stdout == "ondam:ondam 660\n"

    write(box, CONFIG.replace("24", "33"))
    main = service.main()
    assert service.systemctl("reload", "ondam") == 0
    write(box, CONFIG.replace("24", '"many"'))
    assert service.systemctl("reload", "ondam") != 0
    assert service.main() == main
    entries = [
        json.loads(line) for line in box.run("journalctl", "-u", "ondam", "-o", "json").stdout.splitlines()
    ]
    said = "\n".join(str(entry.get("MESSAGE")) for entry in entries)
    assert "In force now: llm.max_tokens." in said
    assert "input should be a valid integer (found 'many')" in said
    assert "France" not in said and "Paris" not in said
    states = {(entry["ONDAM_ENGINE"], entry["ONDAM_STATE"]) for entry in entries if "ONDAM_ENGINE" in entry}
    assert {(name, "ready") for name in ENGINES} <= states

    began = time.monotonic()
    assert service.systemctl("stop", "ondam") == 0
    ended = time.monotonic() - began
    assert ended < 5 and service.show("Result") == "success"
    assert engines(box) == []
    record_property("seconds", {"start": started, "stop": ended})


def test_it_comes_back_from_whatever_ends_it(service: Service) -> None:
    box = service.box
    # Not thirty seconds, which is a test's time too.
    write(box, "[Service]\nWatchdogSec=2\n", "/etc/systemd/system/ondam.service.d/watchdog.conf")
    service.systemctl("daemon-reload")
    assert service.systemctl("start", "ondam") == 0
    first = service.main()

    # An engine: the daemon sees to it, the service goes on.
    assert box.run("pkill", "-KILL", "-f", "ondam_engines.piper.serve").returncode == 0
    box.until(lambda: any("piper" in line for line in engines(box)), 30)
    assert service.main() == first and service.active()

    # The daemon: no engine of the one before is left beside the new ones.
    box.run("kill", "-KILL", first)
    service.comes_anew(first)
    second = service.main()
    assert service.show("NRestarts") == "1"
    assert sum("ondam_engines.piper.serve" in line for line in engines(box)) == 1

    # A daemon that does not move any more: the watchdog.
    box.run("kill", "-STOP", second)
    service.comes_anew(second)
    assert service.show("NRestarts") == "2"
    assert "watchdog" in box.run("journalctl", "-u", "ondam").stdout.lower()

    # The machine, switched off as it should be, and with the plug.
    box.shut_down()
    box.boot()
    assert service.active() and service.show("NRestarts") == "0"
    box.pull_the_plug()
    box.boot()
    assert service.active() and status(box)["state"] == "listening"


def test_what_no_restart_mends_is_not_started_again(service: Service) -> None:
    write(service.box, CONFIG.replace("24", '"many"'))
    assert service.systemctl("start", "ondam") != 0
    assert (service.show("ActiveState"), service.show("ExecMainStatus")) == ("failed", "3")
    time.sleep(3)  # RestartSec is 2
    assert (service.show("ActiveState"), service.show("NRestarts")) == ("failed", "0")
    told = service.box.run("ondam", "service", "status", "--system")
    assert told.returncode == 1 and "journalctl -u ondam" in told.stdout


def test_who_may_use_the_systems_daemon_counts_by_group(service: Service) -> None:
    box = service.box
    assert service.systemctl("start", "ondam") == 0
    for name, groups in (("ann", "ondam"), ("ben", "ondam,ondam-admin"), ("eve", "")):
        more = ["--groups", groups] if groups else []
        assert box.run("useradd", "--create-home", *more, name).returncode == 0
    answers = {
        name: [
            box.run("ondam", *words, user=name).returncode == 0
            for words in (("status",), ("mode", "muted"), ("engines", "restart", "espeak"))
        ]
        for name in ("ann", "ben", "eve")
    }
    assert answers == {"ann": [True, True, False], "ben": [True, True, True], "eve": [False, False, False]}
    for name in answers:
        box.run("userdel", "--remove", name)


def test_a_users_own_service_begins_without_a_login_and_hears_pipewire(installed: Box) -> None:
    box = installed
    box.run("useradd", "--create-home", "ada")
    assert box.run("loginctl", "enable-linger", "ada").returncode == 0
    own = Service(box, "ada")
    box.until(lambda: own.systemctl("is-system-running") in {0, 1}, 30)
    done = box.run("ondam", "service", "install", user="ada")
    assert done.returncode == 0, done.stderr
    own.comes()
    told = status(box, "ada")
    assert told["state"] == "listening"
    socket = box.run("sh", "-c", "stat -c '%U %a' $XDG_RUNTIME_DIR/ondam-*/control.sock", user="ada").stdout
    assert socket == "ada 600\n"
    began = time.monotonic()
    assert own.systemctl("stop", "ondam") == 0 and time.monotonic() - began < 5
    assert box.run("ondam", "service", "uninstall", user="ada").returncode == 0
    assert own.show("LoadState") == "not-found"
