"""The real daemon, whose event loop (SIGUSR1, for two seconds) or sound (SIGUSR2, and again to go on) gets
stuck on demand. Arguments: the command line that it stands for, ``… -m ondam up …``."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator

from ondam.__main__ import main
from ondam.audio import alive
from ondam.audio.simulated import WavMicrophone
from ondam.types import Block

BLOCKED_S = 2.0

blocks_of_a_file = WavMicrophone.blocks
flows = asyncio.Event()


async def blocks(self: WavMicrophone) -> AsyncGenerator[Block, None]:
    async for block in blocks_of_a_file(self):
        await flows.wait()
        yield block


def begin() -> None:
    flows.set()
    WavMicrophone.blocks = blocks  # type: ignore[method-assign]
    alive.STUCK_NS = 500_000_000
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(BLOCKED_S))
    signal.signal(signal.SIGUSR2, lambda *_: flows.clear() if flows.is_set() else flows.set())
    del sys.argv[1 : sys.argv.index("ondam") + 1]
    main()


if __name__ == "__main__":
    begin()
