"""The panel: ``ondam panel`` as a process of the tray's, started once and opened as often as wanted."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

BEGINS_WITHIN_S = 30.0
"""Until it prints its address: a cold start on a busy machine."""

REASON = 300
"""Characters of what a panel that did not come up said."""


@dataclass(frozen=True, slots=True)
class NotOpened:
    """A message code with its facts: why no page is seen."""

    code: str
    facts: Mapping[str, object]


class Page:
    """To be used from one event loop, but for ``close``."""

    def __init__(self, ondam: Sequence[str]) -> None:
        # It ends when its stdin does, so that a tray that is killed leaves none.
        self._command = (*ondam, "panel", "--no-open", "--until-stdin-ends")
        self._process: asyncio.subprocess.Process | None = None
        self._address = ""
        self._one = asyncio.Lock()

    async def open(self) -> NotOpened | None:
        """Show it in the browser, unless something is in the way. Raises OSError."""
        async with self._one:
            if self._process is None or self._process.returncode is not None:
                reason = await self._begin()
                if not self._address:
                    return NotOpened("tray_panel_failed", {"reason": reason})
            shown: bool = await asyncio.to_thread(webbrowser.open, self._address)
        return None if shown else NotOpened("tray_no_browser", {})

    def close(self) -> None:
        """The page ends with the tray."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    async def _begin(self) -> str:
        """Why it did not come up, where it did not."""
        pipe = subprocess.PIPE
        with tempfile.TemporaryFile() as said:  # no pipe: nobody would read it later
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=said
            )
            assert process.stdout is not None
            try:
                line = await asyncio.wait_for(process.stdout.readline(), BEGINS_WITHIN_S)
            except TimeoutError:
                process.terminate()
                line = b""
            self._address = line.decode("utf-8", "replace").strip()
            if self._address:
                return ""
            code = await process.wait()
            return _last(said) or f"exit code {code}"


def _last(said: IO[bytes]) -> str:
    """The last line: what is wrong, and not what to do."""
    said.seek(0)
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").splitlines()]
    return next((line[:REASON] for line in reversed(lines) if line and not line.startswith("→")), "")
