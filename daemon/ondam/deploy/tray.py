"""The tray's own environment: the distribution's Python, which sees PyGObject, pystray and our few modules.

PyGObject belongs to the system's Gtk and cannot well come from the registry (it is compiled against it). So
the environment is of the system's Python with ``--system-site-packages``, and pystray, which is LGPL, is in
no other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import filelock

from ondam.errors import DesktopError
from ondam.places import Places
from ondam_ui.tray.session import packages

SYSTEM_PYTHON = Path("/usr/bin/python3")

OLDEST = (3, 11)
"""As ``requires-python``."""

STAMP = ".ondam-tray.json"

ENTRY = "ondam-tray.desktop"

ASK = (
    "import json, runpy, sys;"
    "pieces = runpy.run_path(sys.argv[1])['pieces']() if sys.version_info >= (3, 11) else {};"
    "print(json.dumps([list(sys.version_info[:2]), pieces]))"
)
"""Run by the system's Python: its version, and which pieces it finds."""

VERSION = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
"""Run by the environment's own: the system's Python, which the distribution may exchange under it."""

FOREIGN = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON")
"""Variables that would point uv to another environment."""


@dataclass(frozen=True, slots=True)
class TrayHome:
    """Where the environment is, or would be."""

    root: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.root / "bin" / "python"

    @property
    def entry(self) -> Path:
        """The autostart entry, to be filled in."""
        return self.root / ENTRY


def home(places: Places) -> TrayHome:
    """For this user."""
    return TrayHome(places.data / "tray")


def ready(places: Places) -> TrayHome:
    """The environment, with our own modules as they are now. DesktopError ``tray_not_installed``."""
    found = home(places)
    stamp = _read(found.root)
    if stamp is None or not _is_whole(found, stamp):
        raise DesktopError("tray_not_installed")
    if stamp["sources"] != _sources():
        with _alone(places):
            _copy(found.root)
            _write(found)
    return found


def install(places: Places, python: Path, mirrors: Mapping[str, str]) -> TrayHome:
    """Make it, or bring it up to date. ``mirrors``: variables for uv that say where packages come from.

    Raises DesktopError: ``tray_no_python``, ``tray_packages_missing``, ``tray_install_failed``. What was
    there stays until the new one is whole.
    """
    _check(python)
    found = home(places)
    with _alone(places):
        stamp = _read(found.root)
        if stamp is None or not _is_whole(found, stamp):
            fresh = found.root.with_name(".tray.building")
            shutil.rmtree(fresh, ignore_errors=True)
            _build(fresh, python, mirrors, places.logs / "tray-install.log")
            _copy(fresh)
            _write(TrayHome(fresh))
            shutil.rmtree(found.root, ignore_errors=True)
            fresh.rename(found.root)
        elif stamp["sources"] != _sources():
            _copy(found.root)
            _write(found)
    return found


def _is_whole(found: TrayHome, stamp: Mapping[str, str]) -> bool:
    """Packages are as the lock says, and its Python is there and the one that they were installed for."""
    return stamp["packages"] == _packages() and stamp["python"] == _version(found.python)


def _version(python: Path) -> str:
    """Empty where it does not run: after an upgrade of the distribution it may lead nowhere."""
    command = [str(python), "-I", "-S", "-c", VERSION]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _check(python: Path) -> None:
    script = resources.files("ondam_ui.tray") / "session.py"
    try:
        asked = subprocess.run(
            [str(python), "-I", "-c", ASK, str(script)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DesktopError("tray_no_python", python=python, reason=error) from error
    if asked.returncode != 0:
        last = (asked.stderr.strip().splitlines() or ["?"])[-1]
        raise DesktopError("tray_no_python", python=python, reason=last)
    version, found = json.loads(asked.stdout)
    if tuple(version) < OLDEST:
        old, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST))
        raise DesktopError("tray_no_python", python=python, reason=f"Python {old} < {oldest}")
    if lacking := packages(found):
        raise DesktopError("tray_packages_missing", packages=" ".join(lacking))


def _build(root: Path, python: Path, mirrors: Mapping[str, str], log: Path) -> None:
    import uv

    log.parent.mkdir(parents=True, exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environ |= {**mirrors, "UV_PYTHON_DOWNLOADS": "never"}
    lock = resources.files("ondam_ui.tray") / "requirements.lock"
    venv = ["venv", "--quiet", "--no-project", "--relocatable", "--system-site-packages"]
    pip = [
        "pip",
        "install",
        "--python",
        str(TrayHome(root).python),
        "--require-hashes",
        "--no-deps",
        "--no-build",
    ]
    steps = ([*venv, "--python", str(python), str(root)], [*pip, "--requirement", str(lock)])
    with log.open("w", encoding="utf-8") as output:
        for step in steps:
            done = subprocess.run(
                [uv.find_uv_bin(), *step],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            output.write(done.stdout)
            if done.returncode != 0:
                last = (done.stdout.strip().splitlines() or ["uv"])[-1].strip()
                raise DesktopError("tray_install_failed", reason=last[:300], log=log)


def _copy(root: Path) -> None:
    """What the tray imports, into the environment: never PYTHONPATH, which would put the packages of another
    Python before its own."""
    (site,) = root.glob("lib/python*/site-packages")
    for name in ("ondam", "ondam_ui"):
        shutil.rmtree(site / name, ignore_errors=True)
    for path, file in _files():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(file.read_bytes())
    (root / ENTRY).write_bytes(_entry().read_bytes())


def _files() -> Iterator[tuple[str, Path]]:
    """Place in the environment, and file: the control client with what it imports, the texts, the tray."""
    daemon = Path(str(resources.files("ondam")))
    ui = Path(str(resources.files("ondam_ui")))
    for folder, patterns in (
        (daemon, ("*.py", "control/*.py", "messages/*")),
        (ui, ("*.py", "tray/*.py", "tray/icons/hicolor/*/*/*.png")),
    ):
        for pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                if file.is_file():
                    yield str(file.relative_to(folder.parent)), file


def _entry() -> Path:
    """The autostart entry: in the checkout, or where the wheel's shared data went."""
    checkout = Path(__file__).parents[3] / "packaging" / "desktop" / ENTRY
    return checkout if checkout.exists() else Path(sys.prefix, "share", "ondam", "desktop", ENTRY)


def _packages() -> str:
    return hashlib.sha256((resources.files("ondam_ui.tray") / "requirements.lock").read_bytes()).hexdigest()


def _sources() -> str:
    digest = hashlib.sha256()
    for path, file in _files():
        digest.update(path.encode() + b"\0" + file.read_bytes() + b"\0")
    digest.update(_entry().read_bytes())
    return digest.hexdigest()


def _read(root: Path) -> dict[str, str] | None:
    try:
        stamp = json.loads((root / STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return None  # never made, or not to its end
    return stamp if isinstance(stamp, dict) and {"packages", "sources", "python"} <= set(stamp) else None


def _write(made: TrayHome) -> None:
    stamp = {"packages": _packages(), "sources": _sources(), "python": _version(made.python)}
    beside = made.root / f"{STAMP}.new"
    beside.write_text(json.dumps(stamp), "utf-8")
    beside.replace(made.root / STAMP)


@contextlib.contextmanager
def _alone(places: Places) -> Iterator[None]:
    places.data.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(places.data / ".tray.lock"):
        yield
