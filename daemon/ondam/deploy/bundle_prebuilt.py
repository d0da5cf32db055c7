"""Wheels of what is only there as source: compiled here for the target, so that nothing is compiled there."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import uv

from ondam.deploy.bundle_manifest import Target
from ondam.deploy.bundle_target import MACHINES, glibc, number
from ondam.errors import BundleError
from ondam.messages import reader_language, text
from ondam.models.store import sha256_of
from ondam.supervisor.manifest import EngineFolder

if TYPE_CHECKING:
    from ondam.models.progress import Reporter

NOTED = "sha256"
"""Beside a wheel that was built: its hash then."""


def portable(engine: EngineFolder, variant: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables to build with, and the CPU flags that the result then needs."""
    environment = engine.manifest.environment
    return {**environment.variables(variant), **environment.portable_env}, tuple(environment.portable_flags)


def wheel_of(
    source: Path,
    engine: EngineFolder | None,
    variant: str,
    target: Target,
    cache: Path,
    mirrors: Mapping[str, str],
    reporter: Reporter,
) -> Path:
    """The wheel made of ``source`` for ``target``; made once, and found in ``cache`` again.

    With the engine's locked build tools where it has some, else with those that the source asks for. Raises
    BundleError where this machine cannot build for the target, or it fails (the log is named).
    """
    own = Target(sys.platform, MACHINES.get(platform.machine(), platform.machine()), _python(), glibc())
    here, there = _told(own), _told(target)
    tools = None if engine is None else engine.manifest.environment.build_locks.get(variant)
    cannot = BundleError("bundle_cannot_compile", package=source.name, here=here, there=there)
    if tools is not None and not _runs_on(target, own):
        raise cannot  # it says beforehand that it is compiled
    variables = {} if engine is None else portable(engine, variant)[0]
    lock = None if engine is None or tools is None else engine.path / tools
    parts = [source.name, None if lock is None else lock.read_text("utf-8"), variables, here]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    folder = cache / "built" / key
    if not _whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        reporter.say(text("bundle_compiles", reader_language(), package=source.name))
        _build(source, lock, folder, {**os.environ, **mirrors, **variables})
    (wheel,) = folder.glob("*.whl")
    if not _runs_on(target, own) and not wheel.name.endswith("-none-any.whl"):
        raise cannot
    return wheel


def _build(source: Path, tools: Path | None, folder: Path, env: Mapping[str, str]) -> None:
    """Build ``source`` into ``folder``, which is there whole or not at all."""
    work, log = folder.with_name(f".{folder.name}.new"), folder.with_name(f"{source.name}.log")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    program, python = uv.find_uv_bin(), str(work / "tools" / "bin" / "python")
    build = [program, "build", "--wheel", "--out-dir", str(work / "out"), str(source)]
    commands = [[*build, "--python", sys.executable]]
    if tools is not None:
        pip = [program, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "--no-build"]
        commands = [
            [program, "venv", "--no-project", "--python", sys.executable, str(work / "tools")],
            [*pip, "--requirement", str(tools)],
            [*build, "--no-build-isolation", "--python", python],
        ]
    with log.open("wb") as out:
        for command in commands:
            done = subprocess.run(command, env=dict(env), stdout=out, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                raise BundleError("bundle_compile_failed", package=source.name, log=log)
    (wheel,) = (work / "out").glob("*.whl")
    (work / "out" / NOTED).write_text(sha256_of(wheel))
    (work / "out").replace(folder)
    shutil.rmtree(work)


def _whole(folder: Path) -> bool:
    """Whether the wheel in there is still what was built."""
    try:
        return [sha256_of(wheel) for wheel in folder.glob("*.whl")] == [(folder / NOTED).read_text()]
    except FileNotFoundError:
        return False


def _told(target: Target) -> str:
    library = f", glibc {target.glibc}" if target.glibc else ""
    return f"{target.system} {target.machine}, Python {target.python}{library}"


def _runs_on(target: Target, own: Target) -> bool:
    """Whether what is compiled here runs there: with this glibc or a newer one."""
    if target.glibc and own.glibc and number(target.glibc) < number(own.glibc):
        return False
    return (own.system, own.machine, own.python) == (target.system, target.machine, target.python)


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
