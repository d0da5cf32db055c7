"""What all tests share."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

REAL = {"fuzz", "faults", "privacy", "scenarios", "engine_contract", "panel", "soak", "sound", "tray"}
"""Folders whose tests run real processes, sockets and sound in real time. On a machine that does something
else for a moment one of them may come too late; it gets another chance, and the report says so (``R``).
Everything else is decided in virtual time and gets none.
"""


def pytest_configure() -> None:
    # Else pytest-asyncio, which asks for the loop that was current before, makes one and never closes it:
    # a ResourceWarning in whatever test runs when it is collected.
    asyncio.set_event_loop(None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # Started in a script's background: what the tests interrupt would inherit that and never end.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in REAL:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
