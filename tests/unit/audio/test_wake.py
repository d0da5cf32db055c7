from __future__ import annotations

import asyncio
import os
import threading

import pytest

from ondam.audio.wake import Wake


async def test_a_call_from_another_thread_wakes_the_loop() -> None:
    woken = asyncio.Event()
    wake = Wake(woken.set)
    threading.Thread(target=wake).start()
    await asyncio.wait_for(woken.wait(), 5)
    wake.close()


async def test_a_hundred_thousand_calls_that_nobody_reads_do_not_block() -> None:
    count = 0

    def woken() -> None:
        nonlocal count
        count += 1

    wake = Wake(woken)
    for _ in range(100_000):
        wake()
    await asyncio.sleep(0.01)
    wake.close()
    assert 1 <= count <= 100_000 // 4096 + 1


async def test_a_call_after_closing_writes_to_no_file_that_took_the_number() -> None:
    wake = Wake(lambda: None)
    wake.close()
    wake.close()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    wake()
    try:
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        os.close(reader)
        os.close(writer)
