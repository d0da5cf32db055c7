"""What the check finds on the machine or was carried there: environments, stand-ins, weights, TensorRT.

Environments come from wheels that ``carry.py`` packed (by the engine's lock, hash by hash, without a
network), or are those that ``ondam engines build`` made.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.gpu import card
from tests.gpu.step import ROOT, Found, Given

WHEELS, STANDIN, WEIGHTS, ONDAM = "wheels", "supertonic-standin", "llm-weights", "ondam.txt"
"""Names below the folder that was carried."""

ENGINES = ("supertonic", "vllm")

NAMES = ("ondam", *ENGINES)

CARD_VARIANT = "cu13"

NEEDED = ("click", "filelock", "numpy", "platformdirs", "psutil", "pydantic", "pynvml")
"""Modules that ``ondam plan`` imports."""


def check(given: Given, which: str = "") -> Found:
    """Builds what was carried: what all steps need, or ``vllm``, which is gigabytes and comes late.

    A step: ``facts`` are the fields of Given that it found.
    """
    kit = Kit(given, dict(given.pythons), dict(given.models), given.tensorrt)
    for name in ("vllm",) if which else ("ondam", "supertonic"):
        if name not in kit.pythons:
            kit.python(name)
    if which:
        kit.language_model()
    else:
        kit.voice()
        kit.find_tensorrt()
    for name, python in sorted(kit.pythons.items()):
        print(f"{name}: {python}")
    for line in kit.lacking:
        print(f"not here: {line}")
    needed = [f"{name} cannot be checked: {why}" for name, why in kit.broken.items()]
    if not which and "supertonic" not in kit.pythons and "supertonic" not in kit.broken:
        needed.append("no environment of supertonic: nothing of it can be checked")
    return Found(
        needed,
        facts={
            "pythons": kit.pythons,
            "models": kit.model_folders,
            "tensorrt": kit.tensorrt,
            "lacking": kit.lacking,
        },
    )


def equipped(given: Given, found: Found) -> Given:
    """``given`` with what was found, which may be nothing where the step was ended."""
    facts = found.facts
    return replace(
        given,
        pythons=facts.get("pythons", given.pythons),
        models=facts.get("models", given.models),
        tensorrt=facts.get("tensorrt", given.tensorrt),
    )


def missing(given: Given) -> list[str]:
    """What a run with a card would need and does not find; looks, and builds nothing."""
    carry, found = Path(given.carry), []
    if not (carry / WHEELS).is_dir():
        found.append(f"wheels ({carry / WHEELS}): tests/gpu/carry.py packs them on a connected machine")
    for name in ENGINES:
        python = environment_folder(name) / "bin" / "python"
        if not _variant_fits(name, given) and not list((carry / WHEELS).glob(_chief(name))):
            found.append(f"environment of {name} for a card ({python}, variant {CARD_VARIANT})")
    if not (carry / STANDIN).is_dir() and importlib.util.find_spec("onnx") is None:
        found.append(f"stand-in for Supertonic's model ({carry / STANDIN}), or the package onnx to make it")
    if not (carry / WEIGHTS / "config.json").is_file():
        found.append(f"weights for vLLM ({carry / WEIGHTS}); its own environment can make a small model")
    if not card.library("libnvinfer.so.10") and not list((carry / WHEELS).glob("tensorrt_cu13_libs-10*")):
        found.append("TensorRT 10 (libnvinfer.so.10)")
    return found


def environment_folder(name: str) -> Path:
    """Where ``ondam engines build`` puts it."""
    home = os.environ.get("ONDAM_HOME")
    share = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    data = Path(home) / "data" if home else Path(share) / "ondam"
    return data / "environments" / name


def _chief(name: str) -> str:
    return {"supertonic": "onnxruntime_gpu-*.whl", "vllm": "vllm-*.whl"}[name]


def _variant_fits(name: str, given: Given) -> bool:
    folder = environment_folder(name)
    try:
        stamp = json.loads((folder / "ondam-stamp.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return given.rehearsal or stamp.get("variant") == CARD_VARIANT


@dataclass
class Kit:
    """What is being put together."""

    given: Given
    pythons: dict[str, str] = field(default_factory=dict)
    model_folders: dict[str, str] = field(default_factory=dict)
    tensorrt: str = ""
    lacking: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    def python(self, name: str) -> None:
        """The Python of the environment ``name``."""
        if name == "ondam" and all(importlib.util.find_spec(module) for module in NEEDED):
            self.pythons[name] = sys.executable
            return
        lock, chief = self._lock(name)
        if chief and lock.is_file():
            try:
                self.pythons[name] = str(self._build(name, lock))
            except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
                self.broken[name] = f"its environment cannot be built from what was carried: {_said(error)}"
        elif name != "ondam" and _variant_fits(name, self.given):
            self.pythons[name] = str(environment_folder(name) / "bin" / "python")
        else:
            self.lacking.append(f"environment of {name}")

    def _lock(self, name: str) -> tuple[Path, bool]:
        wheels = Path(self.given.carry) / WHEELS
        if name == "ondam":
            return Path(self.given.carry) / ONDAM, wheels.is_dir()
        lock = ROOT / "engines" / "ondam_engines" / name / f"requirements.{CARD_VARIANT}.lock"
        return lock, bool(list(wheels.glob(_chief(name))))

    def _build(self, name: str, lock: Path) -> Path:
        folder = self.given.made("environments") / name
        python, mark = folder / "bin" / "python", folder / "whole"
        if mark.exists():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        uv, wheels = self._uv(), Path(self.given.carry) / WHEELS
        pip = [
            uv,
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-index",
            "--no-deps",
            "--python",
            str(python),
        ]
        _run([uv, "venv", "--quiet", "--offline", "--no-project", "--python", sys.executable, str(folder)])
        _run([*pip, "--find-links", str(wheels), "--require-hashes", "--requirement", str(lock)])
        if name == "supertonic" and (libraries := sorted(wheels.glob("tensorrt_cu13_libs-10*.whl"))):
            # No lock can name it: docs/decisions/supertonic.md.
            _run([*pip, str(libraries[-1])])
        if name != "ondam":
            # Behind the environment's own packages.
            site = next((folder / "lib").glob("python3.*/site-packages"))
            (site / "ondam-engines.pth").write_text(f"{ROOT / 'engines'}\n", "utf-8")
        mark.touch()
        return python

    def _uv(self) -> str:
        """From the PATH, beside this Python, or out of a wheel: a bare machine need not even have pip."""
        beside = Path(sys.executable).with_name("uv")
        found = shutil.which("uv") or (str(beside) if beside.exists() else None)
        if found:
            return found
        place = self.given.made("uv") / "uv"
        if not place.exists():
            wheels = sorted((Path(self.given.carry) / WHEELS).glob("uv-*.whl"))
            if not wheels:
                raise FileNotFoundError("no uv, neither on the PATH nor among the wheels")
            with zipfile.ZipFile(wheels[-1]) as wheel:
                inside = next(name for name in wheel.namelist() if name.endswith(".data/scripts/uv"))
                place.write_bytes(wheel.read(inside))
            place.chmod(place.stat().st_mode | stat.S_IXUSR)
        return str(place)

    def voice(self) -> None:
        """Supertonic's stand-in: carried, or made here."""
        carried = Path(self.given.carry) / STANDIN
        if carried.is_dir():
            self.model_folders["supertonic"] = str(carried)
        elif importlib.util.find_spec("onnx") is not None:
            made = self.given.made(STANDIN)
            # As a file: its package asks for ondam's.
            _run([sys.executable, str(ROOT / "tests" / "fakes" / "standins" / "supertonic.py"), str(made)])
            self.model_folders["supertonic"] = str(made)
        else:
            self.lacking.append("stand-in for Supertonic's model")

    def language_model(self) -> None:
        """A checkpoint that was carried, or a small one made by vLLM's own packages."""
        weights = Path(self.given.carry) / WEIGHTS
        if (weights / "config.json").is_file():
            self.model_folders["vllm"] = str(weights)
        elif "vllm" in self.pythons:
            made = self.given.made("vllm-standin")
            script = ROOT / "tests" / "fakes" / "standins" / "vllm.py"
            try:
                if not (made / "config.json").is_file():
                    _run([self.pythons["vllm"], "-P", str(script), str(made)])
                self.model_folders["vllm"] = str(made)
            except (OSError, subprocess.SubprocessError) as error:
                self.broken["vllm"] = f"no small model can be made: {_said(error)}"
        else:
            self.lacking.append("model for vLLM")

    def find_tensorrt(self) -> None:
        """The wheel's libraries in Supertonic's environment, or the system's."""
        if python := self.pythons.get("supertonic"):
            libraries = sorted(Path(python).parents[1].glob("lib/python3.*/site-packages/tensorrt_libs"))
            if libraries:
                self.tensorrt = str(libraries[0])
                return
        if card.library("libnvinfer.so.10"):
            self.tensorrt = "the system's"
            return
        self.lacking.append("TensorRT 10")


def _run(command: Iterable[str]) -> None:
    subprocess.run([*command], cwd=ROOT, capture_output=True, text=True, check=True)


def _said(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line.strip() for line in str(error.stderr or error.stdout).splitlines() if line.strip()]
        return " ".join(lines[-4:])[-400:]
    return str(error)
