"""B30: asked to end, the daemon is gone in under five seconds with status 0 and leaves nothing."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from ondam.control.client import Client
from ondam.measure.clips import clips
from tests.scenarios.house import House

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]


async def reach(house: House, moment: str) -> asyncio.Task[object] | None:
    """Bring the daemon to ``moment``; a turn that is under way is returned."""
    if moment == "loading":
        while not house.places.control_socket.exists():
            await asyncio.sleep(0.02)
        return None
    await house.ready()
    if moment == "listening":
        return None
    reached = asyncio.Event()

    async def turn() -> object:
        async with Client(house.places.control_socket) as client:
            return await client.wav_turn(clips("en")[0].wav, "en")

    async with Client(house.places.control_socket) as client:
        asking: asyncio.Task[object] = asyncio.create_task(turn())
        async for event in client.events():
            if event["type"] == "state" and event["state"] == moment:
                reached.set()
                break
    return asking


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("loading", signal.SIGTERM),
        ("listening", signal.SIGINT),
        ("hearing", signal.SIGHUP),
        ("thinking", signal.SIGTERM),
        ("speaking", signal.SIGTERM),
    ],
)
async def test_b30_it_ends_in_under_five_seconds_and_leaves_nothing(
    tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    house = House(tmp_path, {"language": "en"})
    house.open()
    asking = None
    try:
        asking = await reach(house, moment)
        assert house.process is not None
        began = time.monotonic()
        house.process.send_signal(number)
        await asyncio.sleep(0.05)
        if house.process.poll() is None:
            house.process.send_signal(number)  # an impatient user asks twice
        code = await asyncio.to_thread(house.process.wait, 10)
        assert time.monotonic() - began < 5
        assert code == 0, house.log.read_text("utf-8")
        assert house.family() == []
        assert not list(house.places.runtime.glob("*.sock"))
    finally:
        house.close()
        if asking is not None:
            await asyncio.gather(asking, return_exceptions=True)
