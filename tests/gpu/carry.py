"""Packs what the check needs on a machine without a network; to be run where there is one. Tells all sizes.

tests/gpu/carry.py [--python 3.12] [--vllm] [--weights FOLDER] [--tensorrt WHEEL] [--archive FILE.tar]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

WHEELS, STANDIN, WEIGHTS, ONDAM = "wheels", "supertonic-standin", "llm-weights", "ondam.txt"
"""As ``steps.equipment`` looks for them."""

FOR_THE_PLAN = (
    "annotated-types",
    "click",
    "filelock",
    "numpy",
    "nvidia-ml-py",
    "platformdirs",
    "psutil",
    "pydantic",
    "pydantic-core",
    "typing-extensions",
    "typing-inspection",
)
"""Of Ondam's own packages: what ``ondam plan`` imports."""

INSTALLER = ("uv",)

OLDEST, NEWEST = 5, 39
"""Of glibc 2.N: pip takes a platform's name letter by letter."""

SOURCE = ("daemon", "engines", "ui", "tests", "pyproject.toml", "packaging/lock")
"""Of the checkout, into the archive."""


def main(argv: Sequence[str] | None = None) -> int:
    """The whole packing."""
    given = arguments(argv)
    into: Path = given.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    engines = ROOT / "engines" / "ondam_engines"
    sets = {
        "ondam": list(entries(ROOT / "packaging" / "lock" / "runtime.lock", FOR_THE_PLAN)),
        "uv": list(entries(ROOT / "packaging" / "lock" / "runtime.lock", INSTALLER)),
        "supertonic": list(entries(engines / "supertonic" / "requirements.cu13.lock")),
    }
    if given.vllm:
        sets["vllm"] = list(entries(engines / "vllm" / "requirements.cu13.lock"))
    sizes = {}
    for name, lock in sets.items():
        wanted = into / (ONDAM if name == "ondam" else f"{name}.txt")
        wanted.write_text("\n".join(fitting(lock, given.python)) + "\n", "utf-8")
        sizes[f"wheels of {name}"] = fetched(wanted, into / WHEELS, given.python)
        tell(f"wheels of {name}", sizes[f"wheels of {name}"])
    if given.tensorrt:
        sizes["TensorRT"] = _copied(given.tensorrt, into / WHEELS)
    make = ROOT / "tests" / "fakes" / "standins" / "supertonic.py"
    subprocess.run([sys.executable, str(make), str(into / STANDIN)], check=True, stdout=subprocess.DEVNULL)
    sizes["stand-in for Supertonic"] = size(into / STANDIN)
    if given.weights:
        shutil.rmtree(into / WEIGHTS, ignore_errors=True)
        shutil.copytree(given.weights, into / WEIGHTS)
        sizes["weights for vLLM"] = size(into / WEIGHTS)
    whole = size(into)
    (into / "contents.json").write_text(
        json.dumps({"python": given.python, "bytes": sizes}, indent=1), "utf-8"
    )
    for name in list(sizes)[len(sets) :]:
        tell(name, sizes[name])
    tell("all of it (what two sets share is there once)", whole)
    if given.archive:
        archived(given.archive, into)
        tell(str(given.archive), given.archive.stat().st_size)
        print(f"there: tar xf {given.archive.name} && tests/gpu/check.sh")
    return 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(prog="tests/gpu/carry.py", description=__doc__, allow_abbrev=False)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--into", type=Path, default=ROOT / "gpu-check")
    parser.add_argument("--python", default=here, help="of the machine with the card; default: %(default)s")
    parser.add_argument("--vllm", action="store_true", help="vLLM too, several GB")
    parser.add_argument("--weights", type=Path, help="a checkpoint for vLLM: config.json and *.safetensors")
    parser.add_argument("--tensorrt", type=Path, help="the vendor's wheel tensorrt_cu13_libs-10…")
    parser.add_argument("--archive", type=Path, help="one file with all of it and the sources")
    given = parser.parse_args(argv)
    if given.weights and not (given.weights / "config.json").is_file():
        parser.error(f"no checkpoint in {given.weights}: config.json is missing")
    if given.tensorrt and not given.tensorrt.name.startswith("tensorrt_cu13_libs-10"):
        parser.error(f"{given.tensorrt.name} is not tensorrt_cu13_libs of TensorRT 10")
    return given


def entries(lock: Path, names: Sequence[str] = ()) -> Iterator[str]:
    """One string for each package of a lock, its hashes on the same line; those of ``names``, or all."""
    for line in lock.read_text("utf-8").replace("\\\n", " ").splitlines():
        entry = re.sub(r"\s+", " ", line.partition(" #")[0]).strip()
        if not entry or entry.startswith(("#", "-")):
            continue
        if not names or re.split(r"[=\s;\[]", entry, maxsplit=1)[0] in names:
            yield entry


def fitting(lock: Sequence[str], python: str) -> Iterator[str]:
    """Those for Python ``python`` (3.12) on Linux: pip would ask the Python that it runs in."""
    target = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    for entry in lock:
        wanted, *hashes = re.split(r" (?=--hash)", entry)
        requirement = Requirement(wanted)
        if requirement.marker is None or requirement.marker.evaluate(target):
            requirement.marker = None
            yield " ".join([str(requirement), *hashes])


def fetched(wanted: Path, folder: Path, python: str) -> int:
    """Into ``folder`` by pip, from wherever pip is told to look; bytes of what ``wanted`` names."""
    platforms = [f"manylinux_2_{n}_x86_64" for n in range(OLDEST, NEWEST + 1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    command = [_pip(), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--require-hashes", "--dest", str(folder), "--requirement", str(wanted)]
    command += ["--implementation", "cp", "--python-version", python]
    for platform in platforms:
        command += ["--platform", platform]
    subprocess.run(command, check=True)
    names = {
        re.split(r"[=\s\[]", line)[0].replace("-", "_").lower() for line in wanted.read_text().splitlines()
    }
    return sum(
        wheel.stat().st_size for wheel in folder.glob("*.whl") if wheel.name.split("-")[0].lower() in names
    )


def _pip() -> str:
    for python in (sys.executable, "python3"):
        done = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
        if done.returncode == 0:
            return python
    sys.exit("pip is needed here, to fetch wheels for another machine")


def _copied(file: Path, folder: Path) -> int:
    shutil.copy2(file, folder)
    return file.stat().st_size


def archived(file: Path, into: Path) -> None:
    """Sources as git knows them in this checkout, and what was packed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SOURCE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(file, "w") as tar:
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                tar.add(ROOT / name, name)
        tar.add(into, "gpu-check")


def size(path: Path) -> int:
    """Bytes of all files below."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def tell(what: str, count: int) -> None:
    """A line for people."""
    print(f"{count / 2**20:9.1f} MiB  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
