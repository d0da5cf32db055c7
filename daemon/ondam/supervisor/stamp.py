"""What an engine's environment was made from. Equal stamps: nothing to do."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from ondam.errors import EngineError
from ondam.supervisor.manifest import MODELS, EngineFolder

STAMP = "ondam-stamp.json"

LAYOUT = 1
"""Raised when ``environment`` lays things out differently, so that every environment is made anew."""

FIRST_VARIANT = "cpu"
"""What a stamp without a variant is of: such stamps were written when there was no other."""

LEFT_OUT = ("__pycache__", ".pytest_cache", MODELS)
"""Not copied: caches, and what only says which models exist."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Two hashes, because copying a changed ``serve.py`` is quick and installing is not."""

    packages: str
    """Of the locks, the variant, the interpreter and the build's variables."""
    source: str
    """Of the kit and the engine's folder."""
    variant: str = FIRST_VARIANT
    """Which of the engine's locks."""

    @classmethod
    def wanted(cls, engine: EngineFolder, variant: str) -> Stamp:
        """What the environment should be made from now. Raises EngineError when there is no such variant."""
        environment = engine.manifest.environment
        packages = {
            "layout": LAYOUT,
            "variant": variant,
            "python": [platform.python_implementation(), sys.version, sys.base_prefix],
            "locks": [hashlib.sha256(lock.read_bytes()).hexdigest() for lock in locks(engine, variant)],
            "build_env": environment.variables(variant),
        }
        return cls(_hash(packages), source_of(kit(), engine.path), variant)

    @classmethod
    def read(cls, environment: Path) -> Stamp | None:
        """What it was made from; None when it is not there, or was not finished."""
        try:
            values = json.loads((environment / STAMP).read_text("utf-8"))
            found = cls(values["packages"], values["source"], values.get("variant", FIRST_VARIANT))
            return found if all(isinstance(value, str) for value in asdict(found).values()) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # half-built and not built are the same thing to everyone who asks

    def write(self, environment: Path) -> None:
        """The last thing that is written, at once or not at all."""
        beside = environment / f"{STAMP}.new"
        beside.write_text(json.dumps(asdict(self)), "utf-8")
        beside.replace(environment / STAMP)


def locks(engine: EngineFolder, variant: str) -> list[Path]:
    """The lock files of a variant in the order of installing: build tools first.

    Raises EngineError when there is no such variant, or one of the files is gone.
    """
    environment = engine.manifest.environment
    if variant not in environment.locks:
        raise EngineError(
            "engine_variant_unknown",
            engine=engine.name,
            variant=variant,
            known=", ".join(environment.locks),
        )
    names = [environment.build_locks.get(variant), environment.locks[variant]]
    found = [engine.path / name for name in names if name is not None]
    for path in found:
        if not path.is_file():
            raise EngineError("engine_lock_missing", engine=engine.name, path=path)
    return found


def kit() -> Path:
    """The folder of what turns a model into an engine."""
    return Path(str(resources.files("ondam_engines"))) / "kit"


def source_of(kit_folder: Path, engine_folder: Path) -> str:
    """The hash of an engine's own program."""
    return _hash([list(file) for folder in (kit_folder, engine_folder) for file in sources(folder)])


def sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file that is copied, in order, with its hash."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part in LEFT_OUT for part in path.parts):
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def _hash(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
