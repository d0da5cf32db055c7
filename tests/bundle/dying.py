"""Installs as ``install.py`` does, and is killed at the Nth thing that it asks of the file system.

    python -I -S dying.py N ARGUMENTS-OF-INSTALL

``+N``: the Nth behind the marker, which is the last thing before the switch. 0: lives, and tells on stdout
how many there are, which writes the marker, and which switches to the new version.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "daemon"))

from ondam.deploy.bundle_first import main
from ondam.deploy.bundle_manifest import MARKER

CHANGES = {
    "open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink",
    "shutil.copyfile", "shutil.rmtree", "subprocess.Popen",
}  # fmt: skip

asked = marker = switching = 0


def count(event: str, arguments: tuple[object, ...]) -> None:
    global asked, marker, switching  # noqa: PLW0603 - a hook has nowhere else to count
    if event not in CHANGES:
        return
    asked += 1
    if event == "os.rename" and str(arguments[1]).endswith(f"/{MARKER}"):
        marker = asked
    if event == "os.rename" and str(arguments[1]).endswith("/current"):
        switching = asked
    if deadly and asked - begin() == deadly:
        os.kill(os.getpid(), signal.SIGKILL)


def begin() -> float:
    """Where counting begins; never before the marker where that is meant."""
    return (marker or float("inf")) if sys.argv[1].startswith("+") else 0


os.sync = lambda: None  # see conftest.py
deadly = int(sys.argv[1])
sys.addaudithook(count)
code = main(sys.argv[2:])
print(asked, marker, switching)
sys.exit(code)
