"""One resident daemon for the scenarios that only ask; others start their own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator

import pytest

from tests.scenarios.house import House


@pytest.fixture(scope="session")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A daemon in English with the embedded models, without devices, ready.

    Its answers are short, since they are played in real time. What it and its engines write beside their own
    folders is below its home as well; its sockets are elsewhere, since their paths have to be short.
    """
    home = tmp_path_factory.mktemp("resident")
    own = {"HOME": home / "user", "XDG_CACHE_HOME": home / "user" / ".cache", "TMPDIR": home / "tmp"}
    for folder in own.values():
        folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="o-") as sockets:
        environ = {**{key: str(folder) for key, folder in own.items()}, "XDG_RUNTIME_DIR": sockets}
        house = House(home, {"language": "en", "llm.max_tokens": "32"}, environ=environ)
        house.open()
        try:
            asyncio.run(house.ready())
            yield house
        finally:
            house.close()
