"""When sound no longer moves though nothing is known to be wrong."""

from __future__ import annotations

from dataclasses import dataclass

from ondam.audio.alive import STUCK_NS, stuck
from ondam.audio.duplex import Duplex
from ondam.audio.simulated import NoMicrophone, WavMicrophone, WavSpeaker


@dataclass
class Device:
    backlog_ns: int = 0
    kept: bool = True


def test_what_is_taken_in_time_is_not_stuck() -> None:
    assert stuck(Device(STUCK_NS), Device()) is None
    assert stuck(Device(STUCK_NS + 1), Device()) == "conversation"


def test_a_device_that_nobody_looks_after_is_stuck() -> None:
    assert stuck(Device(kept=False), Device()) == "microphone"
    assert stuck(Device(), Device(kept=False)) == "speaker"


def test_who_hears_nothing_and_plays_nowhere_is_never_stuck() -> None:
    assert stuck(NoMicrophone(), WavSpeaker(None, longest_s=0)) is None


async def test_a_file_waits_for_nobody() -> None:
    now_ns = 0

    async def sleep(seconds: float) -> None:
        nonlocal now_ns
        now_ns += round(seconds * 1e9)

    microphone = WavMicrophone(None, clock=lambda: now_ns, sleep=sleep)
    assert microphone.backlog_ns == 0, "not begun"
    blocks = microphone.blocks()
    await anext(blocks)
    assert microphone.backlog_ns == 0
    now_ns += STUCK_NS + 20_000_000
    assert stuck(microphone, None) == "conversation"
    assert stuck(Duplex(microphone, WavSpeaker(None, longest_s=0)), None) == "conversation"
    await microphone.close()
    assert stuck(microphone, None) is None
    await blocks.aclose()
