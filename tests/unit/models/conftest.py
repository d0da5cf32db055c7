from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine can reach (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="ondam-test-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _loopback_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxy this machine uses."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
