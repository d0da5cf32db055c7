"""What is known of the machine. Read by ``probe``, or from JSON for a machine that is not here.

The JSON: ``{"os", "arch", "cpu": {"cores", "flags"}, "ram_gib", "memory_gb_s"?, "unified_memory"?,
"disk_free_gib"?, "on_battery"?, "gpus": [{"name", "vram_gib", "free_gib", "driver", "compute_capability",
"bandwidth_gb_s"?, "neighbours_gib"?}]}``. Beside these: ``cpu.name``, ``cpu.threads``, ``vulkan``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic
from pydantic_core import PydanticCustomError

from ondam.config.schema import Table, check
from ondam.errors import ConfigError

SYSTEMS = {"macos": "darwin", "mac": "darwin", "windows": "win32"}
"""Other names of systems, as ``sys.platform`` has them."""

KNOWN_SYSTEMS = ("linux", "darwin", "win32")

MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
"""Other names of processors."""

KNOWN_MACHINES = ("x86_64", "aarch64")
"""What the engines' packages are built for."""

MORE_THAN_CARD = "gpu_more_than_card"
NO_DRIVER = "gpu_driver"
NO_CAPABILITY = "gpu_capability"
UNPRINTABLE = "text_unprintable"
UNKNOWN_SYSTEM = "facts_system"
UNKNOWN_MACHINE = "facts_machine"
"""Codes of what is wrong with a value; ``value_`` before each is its message."""

DRIVER = re.compile(r"[0-9]{1,4}(\.[0-9]+)*")
CAPABILITY = re.compile(r"([1-9]|[12][0-9])(\.[0-9])?")
"""A capability's second number has one digit; 89 is 8.9 without its point, and no card's."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card, or one slice of a card."""

    name: str
    vram_gib: float
    """All of its memory; of a card that shares the machine's memory, that."""
    free_gib: float
    """What is free for Ondam now, its own engines' memory counted as free."""
    driver: str | None = None
    """NVIDIA's driver (``580.65.06``); None where there is none: another maker's card, or not loaded."""
    compute_capability: str | None = None
    """``8.9``; None on another maker's card."""
    bandwidth_gb_s: float | None = None
    """Of its memory."""
    neighbours_gib: float | None = None
    """What other programs hold on it; None where nobody said: then whatever is not free."""

    @property
    def driver_major(self) -> int | None:
        """580 of ``580.65.06``."""
        head = (self.driver or "").partition(".")[0]
        return int(head) if head.isdecimal() else None

    @property
    def capability(self) -> tuple[int, int] | None:
        """As numbers that can be compared: 10.0 is more than 8.9."""
        major, _, minor = (self.compute_capability or "").partition(".")
        return (int(major), int(minor or 0)) if major.isdecimal() and (minor or "0").isdecimal() else None


@dataclass(frozen=True, slots=True)
class Facts:
    """One machine, as far as this process may use it."""

    cores: int
    """Cores that this process may compute on at once: physical ones, less what affinity and quota forbid."""
    logical_cores: int
    """Hardware threads of the machine."""
    cpu: str
    """The processor's name, for people."""
    cpu_flags: frozenset[str]
    """As /proc/cpuinfo names them; empty where the system does not tell."""
    memory_mib: int
    """Installed, or what the container may use."""
    system: str
    """``linux``, ``darwin``, ``win32``."""
    machine: str
    """``x86_64``, ``aarch64``, …"""
    gpus: tuple[Gpu, ...] = ()
    """In CUDA's order: ``cuda:0`` is the first."""
    memory_gb_s: float | None = None
    """Bandwidth of the main memory; None where nobody measured it."""
    unified_memory: bool = False
    """Processor and GPU share one memory (Apple, Jetson, GB10)."""
    disk_free_gib: float | None = None
    """Where the models lie."""
    on_battery: bool = False
    vulkan: bool = False
    """Whether there is a Vulkan driver for a real GPU."""

    @property
    def ram_gib(self) -> float:
        """``memory_mib`` in GiB."""
        return self.memory_mib / 1024

    @property
    def metal(self) -> bool:
        """Whether Apple's GPU can be computed on: every Mac with Apple's own processor."""
        return self.system == "darwin" and self.machine == "aarch64"

    @classmethod
    def from_json(cls, value: object, origin: object) -> Facts:
        """From parsed JSON that came from ``origin``. Raises ConfigError with every problem, by its key."""
        if not isinstance(value, Mapping):
            raise ConfigError("plan_facts_no_object", path=origin)
        given = check(_Machine, value, origin)
        return cls(
            cores=given.cpu.cores,
            logical_cores=given.cpu.threads or given.cpu.cores,
            cpu=given.cpu.name or given.arch,
            cpu_flags=frozenset(given.cpu.flags),
            memory_mib=round(given.ram_gib * 1024),
            system=given.os,
            machine=given.arch,
            gpus=tuple(gpu.as_fact() for gpu in given.gpus),
            memory_gb_s=given.memory_gb_s,
            unified_memory=bool(given.unified_memory),
            disk_free_gib=given.disk_free_gib,
            on_battery=bool(given.on_battery),
            vulkan=bool(given.vulkan),
        )

    def as_json(self) -> dict[str, Any]:
        """As ``from_json`` reads it; what is not known is left out."""
        known = {
            "memory_gb_s": self.memory_gb_s,
            "unified_memory": self.unified_memory,
            "disk_free_gib": self.disk_free_gib,
            "on_battery": self.on_battery,
            "vulkan": self.vulkan,
        }
        return {
            "os": self.system,
            "arch": self.machine,
            "cpu": {
                "name": self.cpu,
                "cores": self.cores,
                "threads": self.logical_cores,
                "flags": sorted(self.cpu_flags),
            },
            "ram_gib": round(self.ram_gib, 3),
            **{name: value for name, value in known.items() if value is not None},
            "gpus": [
                {
                    name: value
                    for name in Gpu.__dataclass_fields__
                    if (value := getattr(gpu, name)) is not None
                }
                for gpu in self.gpus
            ],
        }


Size = Annotated[float, pydantic.Field(gt=0, le=1e6, allow_inf_nan=False)]
Amount = Annotated[float, pydantic.Field(ge=0, le=1e6, allow_inf_nan=False)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError(UNPRINTABLE, "characters that cannot be shown")
    return text


Name = Annotated[str, pydantic.Field(min_length=1, max_length=200), pydantic.AfterValidator(_printable)]


class _Cpu(Table):
    cores: Annotated[int, pydantic.Field(ge=1, le=4096)]
    flags: list[Name] = pydantic.Field(default=[])
    name: Name | None = None
    threads: Annotated[int, pydantic.Field(ge=1, le=8192)] | None = None


class _Gpu(Table):
    name: Name
    vram_gib: Size
    free_gib: Amount | None = None
    driver: str | None = None
    compute_capability: str | None = None
    bandwidth_gb_s: Size | None = None
    neighbours_gib: Amount | None = None

    @pydantic.field_validator("driver", mode="before")
    @classmethod
    def _a_driver(cls, value: object) -> object:
        if value is None or DRIVER.fullmatch(text := _number_or_text(value)):
            return None if value is None else text
        raise PydanticCustomError(NO_DRIVER, "no driver")

    @pydantic.field_validator("compute_capability", mode="before")
    @classmethod
    def _a_capability(cls, value: object) -> object:
        if value is None:
            return None
        # [8, 9] is how PyTorch tells it.
        pair = value if isinstance(value, list) and len(value) == 2 else [value]
        text = ".".join(_number_or_text(part) for part in pair)
        if CAPABILITY.fullmatch(text):
            return text
        raise PydanticCustomError(NO_CAPABILITY, "no compute capability")

    @pydantic.model_validator(mode="after")
    def _fits_the_card(self) -> _Gpu:
        for name in ("free_gib", "neighbours_gib"):
            if (getattr(self, name) or 0) > self.vram_gib:
                raise PydanticCustomError(MORE_THAN_CARD, "more than the card has")
        return self

    def as_fact(self) -> Gpu:
        free = self.vram_gib - (self.neighbours_gib or 0) if self.free_gib is None else self.free_gib
        return Gpu(
            name=self.name,
            vram_gib=self.vram_gib,
            free_gib=free,
            driver=self.driver,
            compute_capability=self.compute_capability,
            bandwidth_gb_s=self.bandwidth_gb_s,
            neighbours_gib=self.neighbours_gib,
        )


def _number_or_text(value: object) -> str:
    """580 and 8.9 are what people write; empty for what is neither."""
    return str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""


def _system(text: str) -> str:
    name = SYSTEMS.get(text.lower(), text.lower())
    if name not in KNOWN_SYSTEMS:
        raise PydanticCustomError(UNKNOWN_SYSTEM, "no system")
    return name


def _machine(text: str) -> str:
    name = MACHINES.get(text.lower(), text.lower())
    if name not in KNOWN_MACHINES:
        raise PydanticCustomError(UNKNOWN_MACHINE, "no processor")
    return name


class _Machine(Table):
    os: Annotated[str, pydantic.AfterValidator(_system)]
    arch: Annotated[str, pydantic.AfterValidator(_machine)]
    cpu: _Cpu
    ram_gib: Size
    memory_gb_s: Size | None = None
    unified_memory: bool | None = None
    disk_free_gib: Amount | None = None
    on_battery: bool | None = None
    vulkan: bool | None = None
    gpus: list[_Gpu] = pydantic.Field(default=[])
