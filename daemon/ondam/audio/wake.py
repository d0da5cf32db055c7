"""Wakes the event loop from the audio callback without a lock wait.

``call_soon_threadsafe`` writes to a socket, and Python lets go of the interpreter lock for that: the callback
then waits for it in line with everybody else (1-5 ms now and then on a busy machine). ``ctypes.PyDLL`` keeps
the lock over the call, here a write of one byte to a pipe that never blocks.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable


class Wake:
    """Call it from any thread: ``woken`` runs on the loop soon after, once for any number of calls."""

    def __init__(self, woken: Callable[[], None]) -> None:
        """On the running loop."""
        self._loop = asyncio.get_running_loop()
        self._woken = woken
        self._reader = self._writer = -1
        if sys.platform != "win32":  # its loop cannot wait for a pipe
            self._libc = ctypes.PyDLL(None)
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)
            self._loop.add_reader(self._reader, self._read)

    def __call__(self) -> None:
        """Never waits. After ``close`` it does nothing."""
        if sys.platform != "win32":
            # A full pipe (-1, ignored) has woken the loop already; so has a closed one nobody to wake.
            self._libc.write(self._writer, b"\0", 1)
            return
        try:
            self._loop.call_soon_threadsafe(self._woken)
        except RuntimeError:  # the loop is closed: nobody listens
            return

    def close(self) -> None:
        """On the loop. A callback that is still to come writes to no file, for the number is gone first."""
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        if reader >= 0:
            self._loop.remove_reader(reader)
            os.close(reader)
            os.close(writer)

    def _read(self) -> None:
        os.read(self._reader, 4096)
        self._woken()
