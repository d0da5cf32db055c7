"""What all tests share."""

from __future__ import annotations

import asyncio


def pytest_configure() -> None:
    # Else pytest-asyncio, which asks for the loop that was current before, makes one and never closes it:
    # a ResourceWarning in whatever test runs when it is collected.
    asyncio.set_event_loop(None)
