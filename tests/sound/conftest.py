"""A virtual sound card for each test, and the sound library pointed at it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.sound.rig import SoundRig

from ondam.audio.pulse import pulse_watch

STOLEN = 0.1
"""Share of the processor time that was wanted during a test and that a host gave to its other guests: sound
in real time has gaps there that nobody in this machine made. Next to nothing on a machine of one's own,
whatever it is busy with itself."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """How much of the processors each test was given."""
    item.stash[_BEFORE] = psutil.cpu_times()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed each time on a machine that was not given its processors has measured nothing, and
    is told as that: ``-rs`` shows it."""
    report = yield
    last = getattr(item, "execution_count", 1) > _RERUNS
    if report.when == "call" and report.failed and last and Path(__file__).parent in item.path.parents:
        stolen = stolen_share(item.stash[_BEFORE], psutil.cpu_times())
        if stolen > STOLEN:
            report.outcome = "skipped"
            where = str(item.path), (item.location[1] or 0) + 1
            report.longrepr = (
                *where,
                f"not measured: {stolen:.0%} of the processor time went to other guests",
            )
    return report


_BEFORE = pytest.StashKey[Any]()
_RERUNS = 2
"""As tests/conftest.py has them."""


def stolen_share(before: Any, after: Any) -> float:
    """Of the processor time that was wanted in between; 0 where the system does not tell."""
    spent = {name: getattr(after, name) - getattr(before, name, 0.0) for name in after._fields}
    wanted = sum(spent.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    return spent.get("steal", 0.0) / wanted if wanted > 0 else 0.0


class Faults:
    """What was told through ``on_fault``, and when."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str | None]] = []

    def __call__(self, code: str | None, /, **_facts: object) -> None:
        self.told.append((time.monotonic(), code))

    @property
    def codes(self) -> list[str | None]:
        return [code for _, code in self.told]

    async def wait_for(self, code: str | None, timeout_s: float) -> float:
        """Seconds until ``code`` is told from now on; fails after ``timeout_s``."""
        begun, seen = time.monotonic(), len(self.told)
        while not any(told == code for _, told in self.told[seen:]):
            if time.monotonic() - begun > timeout_s:
                pytest.fail(f"{code} was not told within {timeout_s:g} s, but {self.codes}")
            await asyncio.sleep(0.01)
        return next(at for at, told in self.told[seen:] if told == code) - begun


@pytest.fixture(params=["pulseaudio"])
def rig(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SoundRig]:
    """Running. Parametrise it indirectly to have PipeWire."""
    rig = SoundRig(tmp_path_factory.mktemp("snd"), request.param)
    point_at(rig, monkeypatch)
    try:
        rig.start()
        _wait_until(
            lambda: {"microphone", "speaker"} <= {d.name for d in pulse_watch().state.devices if d.default}
        )
        yield rig
    finally:
        rig.stop()
        # The next test's server is another: this process must have noticed that this one ended.
        _wait_until(lambda: not pulse_watch().state.running)


def point_at(rig: SoundRig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PULSE_SERVER", "PULSE_COOKIE"):
        monkeypatch.setenv(name, rig.environment[name])


def _wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
