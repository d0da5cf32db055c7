"""An engine's own virtual environment: made beside the old one and swapped in whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

import filelock

from ondam.carried import carried
from ondam.errors import EngineError
from ondam.messages import reader_language, text
from ondam.places import Places
from ondam.supervisor.driver import runnable
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.stamp import LEFT_OUT, STAMP, Stamp, kit, locks
from ondam.supervisor.tampering import refuse_changed

Outcome = Literal["current", "updated", "built"]
"""Nothing to do; only our own files were copied; made anew."""

STEP = re.compile(r"\[(\d+)/(\d+)\]\s*(.*)")
"""How ninja counts (and CMake's makefiles do in percent): ``[17/203] Building …``."""

PERCENT = re.compile(r"\[\s*(\d+)%\]\s*(.*)")

CAUSE = re.compile(r"^\s*(?:error:|cause:|×|├─▶|╰─▶)\s*(.*)")
"""How uv says what went wrong, from the outside in."""

NOISE = re.compile(r"^(DEBUG|TRACE|INFO|WARN)\s+")

FOREIGN = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON")
"""Variables that would point uv, or a build, to another environment than the one that is being made."""


class Progress(Protocol):
    """Where a person watches."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """What is being done, and how far it is when that is known."""


class Mirrors(Protocol):
    """Where packages come from; ``models.registry.Registry`` is one."""

    def uv_environment(self) -> dict[str, str]:
        """Variables for uv, to be laid over our own."""


def variant_for(engine: EngineFolder, driver: str | None = None) -> str:
    """The variant for this machine where no plan names one. Raises EngineError when the engine has none.

    With NVIDIA's ``driver``: of those for its cards the newest that it can run.
    """
    environment = engine.manifest.environment
    known = environment.locks
    wanted = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "cpu")
    for variant in (*runnable(environment, driver), wanted, "cpu"):
        if variant in known:
            return variant
    raise EngineError(
        "engine_variant_unknown", engine=engine.name, variant=wanted, known=", ".join(known) or "-"
    )


def environment_folder(name: str, places: Places) -> Path:
    """Where the environment of the engine ``name`` is made."""
    return places.environments / name


def environment_used(engine: EngineFolder, places: Places) -> Path:
    """The environment that is used: one made here for this version of Ondam, else what its bundle brought."""
    own, brought = environment_folder(engine.name, places), _brought(engine.name)
    if brought is None:
        return own
    stamp = Stamp.read(own)
    if stamp is None or stamp.variant not in engine.manifest.environment.locks:
        return brought
    return own if stamp == Stamp.wanted(engine, stamp.variant) else brought


def _brought(name: str) -> Path | None:
    version = carried()
    root = None if version is None else version / "environments" / name
    return root if root is not None and Stamp.read(root) is not None else None


def installed(engine: EngineFolder, places: Places, variant: str | None = None) -> Home:
    """Where the engine's program is.

    Raises EngineError ``engine_not_built``, or ``engine_other_variant`` when it was built for another
    ``variant`` than the plan's.
    """
    root = environment_used(engine, places)
    home = _home(root, engine.name)
    stamp = _made_from(root, engine.name)
    # The folder is elsewhere when the environment was made for another version of Python.
    if stamp is None or not home.folder.is_dir():
        raise EngineError("engine_not_built", engine=engine.name, path=root)
    if variant not in (None, stamp.variant):
        raise EngineError("engine_other_variant", engine=engine.name, built=stamp.variant, wanted=variant)
    refuse_changed(engine, home, stamp)
    return home


def is_current(engine: EngineFolder, variant: str, places: Places) -> bool:
    """Whether ``build`` would find nothing to do."""
    root, wanted = environment_used(engine, places), Stamp.wanted(engine, variant)
    found = _made_from(root, engine.name)
    if found is not None and root == _brought(engine.name):
        # Whole since the bundle was installed; that the system's Python was updated since does not unmake it.
        return (found.variant, found.source) == (wanted.variant, wanted.source)
    return found == wanted


def build(
    engine: EngineFolder,
    variant: str,
    places: Places,
    *,
    registry: Mirrors,
    progress: Progress,
    log: Path,
    wheels: Path | None = None,
) -> Outcome:
    """Make the environment, or bring it up to date. uv's and the compiler's output go to ``log``.

    ``wheels``: a list of wheels in the place of the engine's locks, as a bundle has it: nothing is compiled.

    Blocks; two builders of one engine wait for each other. When interrupted, the old environment is still
    there whole, or the next call begins anew. Raises EngineError: ``engine_build_failed``, which names the
    log, ``engine_environment_unwritable``.
    """
    with _told(engine.name, places):
        return _build(engine, variant, places, registry, progress, log, wheels)


@contextlib.contextmanager
def _told(name: str, places: Places) -> Iterator[None]:
    """No right to write there, no room, a folder in the place of a file: told as an EngineError."""
    try:
        yield
    except OSError as error:
        path = error.filename or environment_folder(name, places)
        facts = {"engine": name, "path": path, "reason": error.strerror or str(error)}
        raise EngineError("engine_environment_unwritable", **facts) from error


def _build(
    engine: EngineFolder,
    variant: str,
    places: Places,
    registry: Mirrors,
    progress: Progress,
    log: Path,
    wheels: Path | None,
) -> Outcome:
    if environment_used(engine, places) == _brought(engine.name) and is_current(engine, variant, places):
        return "current"
    root = environment_folder(engine.name, places)
    places.environments.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(places.environments / f".{engine.name}.lock")
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(lock.acquire(timeout=0))
        except filelock.Timeout:
            progress.step(text("build_waits", reader_language()))
            held.enter_context(lock.acquire())
        wanted, found = Stamp.wanted(engine, variant), _made_from(root, engine.name)
        if found == wanted:
            return "current"
        if found is not None and found.packages == wanted.packages:
            progress.step(text("build_copies", reader_language()))
            (root / STAMP).unlink()
            _copy_sources(engine, root)
            wanted.write(root)
            return "updated"
        fresh = places.environments / f".{engine.name}.building"
        if _made_from(fresh, engine.name) == wanted:
            _swap(fresh, root)  # the last build ended after the last thing that is written
            return "built"
        _remove(fresh)
        with log.open("w", encoding="utf-8") as output:
            mirrors = {**registry.uv_environment(), "UV_PYTHON_DOWNLOADS": "never"}
            _install(
                engine,
                variant,
                fresh,
                lambda env: _Uv(engine.name, root.parent, {**env, **mirrors}, progress, output, log),
                wheels,
            )
        _copy_sources(engine, fresh)
        wanted.write(fresh)
        _swap(fresh, root)
        return "built"


def remove(name: str, places: Places) -> bool:
    """Remove the environment. Returns whether there was one. Raises EngineError where it may not be."""
    root = environment_folder(name, places)
    with (
        _told(name, places),
        filelock.FileLock(places.environments / f".{name}.lock")
        if root.exists()
        else contextlib.nullcontext(),
    ):
        existed = root.exists()
        _remove(root)
        return existed


@dataclass(frozen=True, slots=True)
class _Uv:
    """uv, run for one engine, watched and written down."""

    engine: str
    folder: Path
    env: Mapping[str, str]
    progress: Progress
    output: IO[str]
    log: Path

    def __call__(self, *arguments: str) -> None:
        """Run it. Raises EngineError with the causes that it named, or the last thing it said."""
        import uv  # late: the daemon looks at environments and never builds one

        command = [uv.find_uv_bin(), *arguments]
        self.output.write(f"$ {' '.join(command)}\n")
        last = why = ""
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    self.output.write(line)
                    self.output.flush()
                    last = line.strip() or last
                    why = f"{why} {cause[1]}".strip() if (cause := CAUSE.match(line)) else why
                    _tell(line, self.progress)
            except BaseException:
                # Ctrl-C, or a display that failed: uv must not go on alone.
                process.terminate()
                raise
        if process.returncode != 0:
            raise EngineError(
                "engine_build_failed", engine=self.engine, log=self.log, reason=(why or last)[:300]
            )


def _install(
    engine: EngineFolder,
    variant: str,
    root: Path,
    uv_for: Callable[[Mapping[str, str]], _Uv],
    wheels: Path | None,
) -> None:
    ours = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    # The user's own CMAKE_ARGS win over the manifest's.
    run = uv_for({**engine.manifest.environment.variables(variant), **ours})
    run.progress.step(text("build_begins", reader_language()))
    run("venv", "--quiet", "--no-project", "--relocatable", "--python", sys.executable, str(root))
    files = locks(engine, variant) if wheels is None else [wheels]
    compiled = len(files) > 1
    python = str(_home(root, engine.name).python)
    # A lock names everything. What it leaves out of a package's wishes is left out on purpose: a package that
    # asks for onnxruntime would lay it over onnxruntime-gpu.
    pip = ["pip", "install", "--python", python, "--require-hashes", "--no-deps"]
    for number, file in enumerate(files):
        if compiled and number == len(files) - 1:
            # Verbose is the only way to see the build back end's output, and with it how far it is. No cache:
            # uv's knows nothing of variables, and would hand out what was compiled for another variant.
            run(*pip, "--verbose", "--no-cache", "--no-build-isolation", "--requirement", str(file))
        else:
            # An sdist without a lock of its build tools would fetch them unpinned.
            run(*pip, "--no-build", "--requirement", str(file))


def _tell(line: str, progress: Progress) -> None:
    debug = NOISE.match(line) is not None
    said = NOISE.sub("", line).strip()
    if step := STEP.search(said):
        progress.step(step[3][:80], int(step[1]), int(step[2]))
    elif percent := PERCENT.search(said):
        progress.step(percent[2][:80], int(percent[1]), 100)
    elif said and not debug and said[0] not in "+-~" and not said.startswith("Using Python"):
        progress.step(said[:80])


def _copy_sources(engine: EngineFolder, root: Path) -> None:
    """The kit and the engine's folder as the package ``ondam_engines`` inside the environment."""
    package = _home(root, engine.name).folder.parent
    _remove(package)
    package.mkdir()
    (package / "__init__.py").write_text('"""Copied by Ondam; changes here are lost."""\n')
    ignore = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(kit(), package / "kit", ignore=ignore)
    shutil.copytree(engine.path, package / engine.name, ignore=ignore)


def _home(root: Path, name: str) -> Home:
    python = root / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Home(python, root / "lib" / version / "site-packages" / "ondam_engines" / name)


def _made_from(root: Path, name: str) -> Stamp | None:
    """What it was made from; None where it is not whole, also where the Python that it points to is gone."""
    return Stamp.read(root) if _home(root, name).python.exists() else None


def _swap(fresh: Path, root: Path) -> None:
    old = root.with_name(f".{root.name}.old")
    _remove(old)
    if root.exists() or root.is_symlink():
        root.rename(old)
    fresh.rename(root)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()  # somebody put it elsewhere: what is there is theirs
    elif path.exists():
        shutil.rmtree(path)


def built(places: Places) -> Iterator[str]:
    """Names of the engines that have a whole environment."""
    if places.environments.is_dir():
        for folder in sorted(places.environments.iterdir()):
            if not folder.name.startswith(".") and Stamp.read(folder) is not None:
                yield folder.name
