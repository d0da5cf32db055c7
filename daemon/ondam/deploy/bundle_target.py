"""Whether a bundle fits this machine. Standard library only.

What is looked at can be given in ``System``, so that every difference can be tried out.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ondam.carried import carried
from ondam.deploy.bundle_manifest import Manifest, Target
from ondam.deploy.bundle_versions import is_there
from ondam.errors import BundleError
from ondam.messages import Phrase, Phrases

MACHINES = {"amd64": "x86_64", "AMD64": "x86_64", "arm64": "aarch64"}

DRIVER = Path("/sys/module/nvidia/version")
CPUINFO = Path("/proc/cpuinfo")

MARGIN = 256 << 20
"""Bytes that stay free on the disk after an installation."""

MENDED_HERE = frozenset({"driver", "disk"})
"""What a person can change about this machine; all else takes a bundle that is made for it."""


@dataclass(frozen=True, slots=True)
class System:
    """The machine that a bundle is to be installed on."""

    system: str
    machine: str
    pythons: tuple[str, ...]
    """Minor versions that were found (``3.11``)."""
    glibc: str | None
    driver: str | None
    cpu_flags: frozenset[str] | None
    """None where the system does not tell."""
    release: str | None
    free: int
    """Bytes on the disk where versions are kept."""


def this_system(root: Path, target: Target) -> System:
    """What this machine is, as far as ``target`` asks for it."""
    machine = platform.machine()
    return System(
        system=sys.platform,
        machine=MACHINES.get(machine, machine),
        pythons=(target.python,) if python_of(target.python) else (_minor(),),
        glibc=glibc(),
        driver=_driver(),
        cpu_flags=_flags(),
        release=release(),
        free=shutil.disk_usage(next(path for path in (root, *root.parents) if is_there(path))).free,
    )


def python_of(version: str) -> Path | None:
    """An interpreter of this minor version: the one that runs (outside of any environment), or PATH's."""
    own = Path(getattr(sys, "_base_executable", sys.executable) or sys.executable)
    version_folder = carried()
    # One that a bundle brought goes with the last version that needs it.
    borrowed = version_folder is not None and own.is_relative_to(version_folder.parent.parent)
    candidates = [own] if _minor() == version and not borrowed else []
    if (named := shutil.which(f"python{version}")) is not None:
        candidates.append(Path(named))
    for path in candidates:
        if _is(path, version):
            return path
    return None


def differences(manifest: Manifest, system: System, *, needed: int | None = None) -> list[Phrase]:
    """In what this machine differs from the bundle's target. ``needed``: bytes on the disk."""
    target = manifest.target
    found: list[Phrase] = []

    def differ(what: str, wanted: object, there: object) -> None:
        found.append(Phrase(f"bundle_target_{what}", wanted=wanted, found=there))

    if system.system != target.system:
        differ("system", target.system, system.system)
    if system.machine != target.machine:
        differ("machine", target.machine, system.machine)
    if not manifest.of_kind("python") and target.python not in system.pythons:
        differ("python", target.python, ", ".join(system.pythons) or "–")
    if target.glibc and (system.glibc is None or number(system.glibc) < number(target.glibc)):
        differ("glibc", target.glibc, system.glibc or "–")
    if target.driver and (system.driver is None or number(system.driver) < (target.driver,)):
        differ("driver", target.driver, system.driver or "–")
    if system.cpu_flags is not None and (lacking := sorted(set(target.cpu_flags) - system.cpu_flags)):
        differ("cpu", " ".join(target.cpu_flags), " ".join(lacking))
    wanted = (manifest.installed_size if needed is None else needed) + MARGIN
    if system.free < wanted:
        differ("disk", _mb(wanted), _mb(system.free))
    return found


def refuse(path: Path, manifest: Manifest, system: System, root: Path, *, needed: int | None = None) -> None:
    """Raises BundleError where this machine differs from the bundle's target, with what helps against that.

    ``root``: where versions are kept. ``needed``: bytes on its disk.
    """
    found = {
        one.code.removeprefix("bundle_target_"): one for one in differences(manifest, system, needed=needed)
    }
    if not found:
        return
    wanted = (manifest.installed_size if needed is None else needed) + MARGIN
    advice: list[Phrase] = []
    if found.keys() - MENDED_HERE:
        advice.append(Phrase("bundle_advice_make"))
    elif "driver" in found:
        advice.append(Phrase("bundle_advice_driver", **found["driver"].facts))
    if "disk" in found:
        # Rounded up: who frees as much as is said is not told to free another megabyte.
        lacking = _mb(wanted - system.free + 999_999)
        if found.keys() == {"disk"}:
            raise BundleError(
                "bundle_disk_short",
                path=path,
                root=root,
                lacking=lacking,
                needed=_mb(wanted),
                free=_mb(system.free),
            )
        advice.append(Phrase("bundle_advice_disk", lacking=lacking, root=root))
    raise BundleError(
        "bundle_wrong_target",
        path=path,
        differences=Phrases(tuple(found.values())),
        advice=Phrases(tuple(advice), between=" "),
    )


def glibc() -> str | None:
    """The version of this machine's; None where it has another library of C."""
    kind, version = platform.libc_ver()
    return version if kind == "glibc" and version else None


def release() -> str | None:
    """The code name of this Debian or Ubuntu (``bookworm``)."""
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("VERSION_CODENAME") or None
    return None


def _mb(size: int) -> str:
    return f"{size // 1_000_000:,d} MB"


def _minor() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _is(python: Path, version: str) -> bool:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout.strip() == version
    return False


def number(version: str) -> tuple[int, ...]:
    """``version`` as it can be compared: 2.100 is newer than 2.36."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _driver() -> str | None:
    with contextlib.suppress(OSError):
        return DRIVER.read_text().strip() or None
    return None


def _flags() -> frozenset[str] | None:
    with contextlib.suppress(OSError), CPUINFO.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() in {"flags", "Features"}:
                return frozenset(value.split())
    return None


def is_root() -> bool:
    """Whether this process may change the machine."""
    return os.geteuid() == 0
