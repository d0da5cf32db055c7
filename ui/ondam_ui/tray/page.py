"""The panel: ``ondam panel`` as a process of the tray's, started once and opened as often as wanted."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import webbrowser
from collections.abc import Sequence

BEGINS_WITHIN_S = 30.0
"""Until it prints its address: a cold start on a busy machine."""


class Page:
    """To be used from one event loop, but for ``close``."""

    def __init__(self, ondam: Sequence[str]) -> None:
        self._command = (*ondam, "panel", "--no-open")
        self._process: asyncio.subprocess.Process | None = None
        self._address = ""
        self._one = asyncio.Lock()

    async def open(self) -> int:
        """Show it in the browser; 0, or the exit code of a panel that did not come up. Raises OSError."""
        async with self._one:
            if self._process is None or self._process.returncode is not None:
                await self._begin()
            if self._address:
                shown: bool = await asyncio.to_thread(webbrowser.open, self._address)
                if shown:
                    return 0
        return (self._process.returncode if self._process else None) or 1

    def close(self) -> None:
        """The page ends with the tray."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    async def _begin(self) -> None:
        nothing = subprocess.DEVNULL
        self._address = ""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing
        )
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), BEGINS_WITHIN_S)
        except TimeoutError:
            self._process.terminate()
            line = b""
        if not line:
            await self._process.wait()
        self._address = line.decode("utf-8", "replace").strip()
