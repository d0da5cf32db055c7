"""A double of the module pynvml: cards as data, and each call can be told to fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 2**30


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return {3: "Not Supported", 4: "Insufficient Permissions", 15: "GPU is lost"}.get(
            self.value, "failed"
        )


@dataclass
class FakeCard:
    """Sizes in bytes. ``slices``: the card is cut in slices (MIG), each at its place; None is a gap."""

    name: str | bytes = "NVIDIA H200"
    uuid: str = "GPU-aa"
    capability: tuple[int, int] = (9, 0)
    total: int = 140 * GIB
    reserved: int = 1 * GIB
    used: int = 0
    bus_bits: int = 6144
    memory_mhz: int = 3201
    compute: dict[int, int | None] = field(default_factory=dict)
    """Process id → its memory; None: the driver does not say."""
    graphics: dict[int, int | None] = field(default_factory=dict)
    slices: list[FakeCard | None] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    """Name of a call, without nvmlDevice, → the error it ends with."""


@dataclass
class FakeNvml:
    cards: list[FakeCard] = field(default_factory=list)
    driver: str | bytes = "580.65.06"
    init_fails: int | None = None
    has_v2: bool = True
    shut: int = 0

    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
    nvmlMemory_v2 = 0x02000028

    def nvmlInit(self) -> None:
        if self.init_fails is not None:
            raise NVMLError(self.init_fails)

    def nvmlShutdown(self) -> None:
        self.shut += 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        return self.driver

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeCard:
        return self._asked(self.cards[index], "GetHandleByIndex")

    def nvmlDeviceGetName(self, card: FakeCard) -> str | bytes:
        return self._asked(card, "GetName").name

    def nvmlDeviceGetUUID(self, card: FakeCard) -> str:
        return self._asked(card, "GetUUID").uuid

    def nvmlDeviceGetCudaComputeCapability(self, card: FakeCard) -> tuple[int, int]:
        return self._asked(card, "GetCudaComputeCapability").capability

    def nvmlDeviceGetMemoryInfo(self, card: FakeCard, version: int | None = None) -> Any:
        if version and not self.has_v2:
            raise NVMLError(self.NVML_ERROR_FUNCTION_NOT_FOUND)
        self._asked(card, "GetMemoryInfo")
        free = card.total - card.reserved - card.used
        used = card.used if version else card.used + card.reserved
        return SimpleNamespace(total=card.total, free=free, used=used)

    def nvmlDeviceGetMemoryBusWidth(self, card: FakeCard) -> int:
        return self._asked(card, "GetMemoryBusWidth").bus_bits

    def nvmlDeviceGetMaxClockInfo(self, card: FakeCard, kind: int) -> int:
        assert kind == 2, "the memory's clock is meant"
        return self._asked(card, "GetMaxClockInfo").memory_mhz

    def nvmlDeviceGetComputeRunningProcesses(self, card: FakeCard) -> list[Any]:
        return self._processes(self._asked(card, "GetComputeRunningProcesses").compute)

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: FakeCard) -> list[Any]:
        return self._processes(self._asked(card, "GetGraphicsRunningProcesses").graphics)

    def nvmlDeviceGetMigMode(self, card: FakeCard) -> list[int]:
        if not card.slices:
            raise NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: FakeCard) -> int:
        return len(card.slices)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: FakeCard, index: int) -> FakeCard:
        if (part := card.slices[index]) is None:
            raise NVMLError(6)
        return part

    @staticmethod
    def _asked(card: FakeCard, call: str) -> FakeCard:
        if call in card.fails:
            raise NVMLError(card.fails[call])
        return card

    @staticmethod
    def _processes(found: dict[int, int | None]) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in found.items()]
