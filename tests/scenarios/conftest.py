"""One resident daemon for the scenarios that only ask; others start their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.scenarios.house import House


@pytest.fixture(scope="session")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A daemon in English with the embedded models, without devices, ready.

    Its answers are short, since they are played in real time.
    """
    house = House(tmp_path_factory.mktemp("resident"), {"language": "en", "llm.max_tokens": "32"})
    house.open()
    try:
        asyncio.run(house.ready())
        yield house
    finally:
        house.close()
