"""The tray runs in an environment of its own, which has what its lock names and nothing of the daemon's."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from importlib.resources import files

from packaging.utils import canonicalize_name

LOOK = """
import importlib, sys

for name in sys.argv[1].split():
    sys.modules[name] = None  # as if it were not installed
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def test_what_the_tray_imports_of_ours_needs_nothing_else() -> None:
    lock = (files("ondam_ui.tray") / "requirements.lock").read_text("utf-8")
    locked = {"ondam", *re.findall(r"^([a-z0-9_.-]+)==", lock, re.MULTILINE)}
    here = packages_distributions()
    missing = [name for name, of in here.items() if not locked.intersection(map(canonicalize_name, of))]
    assert "platformdirs" in missing and "aiohttp" not in missing
    ours = ["ondam.control.client", "ondam.control.wire", "ondam.messages", "ondam_ui.tray.link"]
    command = [sys.executable, "-c", LOOK, " ".join(missing), *ours]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
