from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ondam.places import Places, places, private_folder


@pytest.fixture
def home() -> Iterator[Places]:
    # Short, because a socket's path may have 107 bytes, which pytest's own folders can exceed.
    root = Path(tempfile.mkdtemp(prefix="ondam-"))
    found = places({"ONDAM_HOME": str(root), "XDG_RUNTIME_DIR": str(root)})
    private_folder(found.runtime)
    yield found
    shutil.rmtree(root)
