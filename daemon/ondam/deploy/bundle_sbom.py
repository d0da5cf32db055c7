"""What an environment is made of, in CycloneDX: written by cyclonedx-py, in an environment of its own.

It looks at installed packages. What of a wheel it reads is its ``dist-info`` alone: an environment that holds
nothing else can be made for any target, and in no time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import uv

from ondam.errors import BundleError

TOOL = "cyclonedx-bom==7.5.0"
SPECIFICATION = "1.6"


def write(wheels: Sequence[Path], folder: Path, out: Path, mirrors: Mapping[str, str]) -> None:
    """The SBOM of an environment with these ``wheels`` in it. ``folder``: to work in. Raises BundleError."""
    program = uv.find_uv_bin()
    env = {**os.environ, **mirrors}
    _run(
        [program, "venv", "--quiet", "--no-project", "--clear", "--python", sys.executable, str(folder)], env
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                if re.match(r"[^/]+\.dist-info/", name) and not name.endswith("/"):
                    opened.extract(name, packages)
    tool = [program, "tool", "run", "--quiet", "--no-config", "--from", TOOL, "cyclonedx-py", "environment"]
    options = [
        "--no-validate",
        "--sv",
        SPECIFICATION,
        "--of",
        "JSON",
        "--output-reproducible",
        "-o",
        str(out),
    ]
    _run([*tool, *options, str(folder)], {**env, "SOURCE_DATE_EPOCH": "0"})


def _run(command: Sequence[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BundleError("bundle_sbom_failed", tool=TOOL, reason=said[-1] if said else done.returncode)
