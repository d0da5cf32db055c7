"""A whole engine as a process: from launch to SIGTERM."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


class Engine:
    """The process."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.socket, self.report = folder / "e.sock", folder / "e.json"
        given = ["--socket", self.socket, "--report", self.report, "--options", json.dumps(options)]
        command = [sys.executable, "-m", "tests.unit.kit.engine", *map(str, given)]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    def until_serving(self) -> None:
        """At most 20 s."""
        deadline = time.monotonic() + 20
        while not self.answers():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def answers(self) -> bool:
        """A ping is answered."""
        try:
            with self.connected() as client:
                client.sendall(b'{"type": "ping"}\n')
                return b"pong" in client.recv(1_000)
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A client."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(self.socket))
            yield client

    def end(self, signum: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Exit status, and the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signum)
        return self.process.wait(10), time.monotonic() - began


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    """Put engines here to have them ended."""
    started: list[Engine] = []
    yield started
    for engine in started:
        engine.process.kill()
        engine.process.communicate()


def started(engines: list[Engine], folder: Path, **options: object) -> Engine:
    engines.append(Engine(folder, **options))
    return engines[-1]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_b30_asked_to_end_it_ends_with_0_and_takes_its_socket_along(
    engines: list[Engine], tmp_path: Path, signum: signal.Signals
) -> None:
    engine = started(engines, tmp_path)
    engine.until_serving()
    assert json.loads(engine.report.read_text())["engine"] == "slow"
    assert engine.socket.stat().st_mode & 0o777 == 0o600
    status, took_s = engine.end(signum)
    assert (status, took_s < 2) == (0, True)
    assert not engine.socket.exists()


def test_b30_asked_to_end_while_it_loads_it_ends(engines: list[Engine], tmp_path: Path) -> None:
    engine = started(engines, tmp_path, load_s=30)
    deadline = time.monotonic() + 20
    while not engine.report.with_suffix(".loading").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    status, took_s = engine.end()
    assert (status, took_s < 2) == (0, True)
    assert not engine.report.exists()


def test_b30_a_model_that_does_not_stop_is_not_waited_for(engines: list[Engine], tmp_path: Path) -> None:
    engine = started(engines, tmp_path, compute_s=30)
    engine.until_serving()
    with engine.connected() as client:
        client.sendall(b'{"type": "synthesize", "data": {"text": "a"}}\n{"type": "ping"}\n')
        assert b"pong" in client.recv(1_000)
        status, took_s = engine.end()
    assert (status, took_s < 2) == (0, True)


def test_what_cannot_load_ends_with_1_and_says_why(engines: list[Engine], tmp_path: Path) -> None:
    engine = started(engines, tmp_path, broken=True)
    said = engine.process.communicate(timeout=20)[1]
    assert engine.process.returncode == 1
    assert "RuntimeError: no weights" in said
    assert not engine.socket.exists()


def test_a_socket_that_nobody_answers_on_is_taken_over(engines: list[Engine], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "e.sock"))
    engine = started(engines, tmp_path)
    engine.until_serving()


def test_a_second_engine_leaves_socket_and_report_of_the_first_alone(
    engines: list[Engine], tmp_path: Path
) -> None:
    first = started(engines, tmp_path)
    first.until_serving()
    before = first.report.read_bytes()
    second = started(engines, tmp_path)
    said = second.process.communicate(timeout=20)[1]
    assert second.process.returncode == 1
    assert "another process listens" in said
    assert first.report.read_bytes() == before
    assert first.answers()
