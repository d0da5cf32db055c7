"""What a bundle is made with: files of ``packaging/``, from the wheel or the checkout, and our own wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import uv

import ondam
from ondam.carried import carried
from ondam.errors import BundleError

IN_CHECKOUT = {
    "runtime.lock": "packaging/lock/runtime.lock",
    "LICENSE": "LICENSE",
    "bundle": "packaging/bundle",
}
"""As pyproject.toml puts them into the wheel."""


def checkout() -> Path | None:
    """The source tree that runs; None where Ondam is installed."""
    root = Path(ondam.__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "packaging").is_dir() else None


def placed(name: str) -> Path:
    """A file or folder: ``runtime.lock``, ``bundle/install.py``, …"""
    first, _, rest = name.partition("/")
    root = checkout()
    if root is not None:
        return root / IN_CHECKOUT[first] / rest
    return Path(__file__).parent / "placed" / name


def ondam_wheel(folder: Path) -> Path:
    """Ondam's own wheel: built from the checkout into ``folder``, or what the bundle of this version brought.

    Raises BundleError where there is neither.
    """
    root = checkout()
    if root is None:
        version = carried()
        found = [] if version is None else sorted((version / "wheels").glob("ondam-*.whl"))
        if not found:
            raise BundleError("bundle_own_wheel_lacks")
        return found[0]
    command = [
        uv.find_uv_bin(),
        "build",
        "--quiet",
        "--wheel",
        "--no-build-isolation",
        "--offline",
        "--no-config",
    ]
    command += ["--python", sys.executable, "--out-dir", str(folder / "own"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise BundleError("bundle_own_wheel_failed", reason=said[-1] if said else done.returncode)
    return sorted((folder / "own").glob("*.whl"))[0]
