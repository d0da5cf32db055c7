"""A virtual sound card for each test, and the sound library pointed at it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from tests.sound.rig import SoundRig

from ondam.audio.pulse import pulse_watch


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
