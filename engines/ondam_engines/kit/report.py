"""``report.json``: what the engine really got, written once it is warm and before it listens."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

SCHEMA = 1

STARTED_AT = datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")
"""When this module was imported: the first thing an engine does."""


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rss_mib(pid: int | None = None) -> int:
    """Resident memory of a process (default: this one) in MiB, rounded up. 0 where it cannot be known."""
    try:
        pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return _peak_rss_mib() if pid is None else 0
    return -(-pages * os.sysconf("SC_PAGE_SIZE") // 2**20)


def _peak_rss_mib() -> int:
    """Without /proc (macOS) only the peak is known from the standard library; Windows has neither."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return -(-peak // (2**20 if sys.platform == "darwin" else 2**10))


def gpu_mib(pid: int | None = None) -> int | None:
    """Memory of a process (default: this one) on all NVIDIA cards in MiB, as the driver counts it.

    None where it cannot be known: no driver, or a container whose process ids are not the machine's.
    """
    query = ["nvidia-smi", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"]
    try:
        # The driver's own tool: no dependency, and one call after the warm-up costs nobody anything.
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = None
    for line in done.stdout.splitlines():
        owner, _, used = (part.strip() for part in line.partition(","))
        if owner == str(pid or os.getpid()) and used.isdecimal():
            found = (found or 0) + int(used)
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions by distribution name; what is not installed is left out."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            # An engine may name alternatives (onnxruntime, onnxruntime-gpu): only what is there counts.
            continue
    return found


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights file that was read."""

    id: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Report:
    """One engine process. Field by field as docs/engines.md lists them."""

    engine: str
    device: str
    threads: int
    model: Weights | None = None
    """None where the engine has no weights."""
    weight_loads: int | None = 0
    """How many times weights were loaded since start: 1, or 0 without weights. None: nobody can tell."""
    dtype: str | None = None
    quantization: str | None = None
    providers: dict[str, list[str]] = field(default_factory=dict)
    """Session name to the execution providers it really has."""
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """Session name to provider to how many operators of the graph it computes; {} where nobody can tell."""
    cuda_graphs: bool | None = None
    """None where there is no such thing."""
    graph_mode: str | None = None
    """``eager``, or the engine's own word for the graphs it captured (``full``, ``piecewise``, …)."""
    context_length: int | None = None
    kv_dtype: str | None = None
    """Type of the key-value cache (``bf16``, ``fp8``, …); None where there is none."""
    memory_mib: int = field(default_factory=rss_mib)
    """Resident, so build the report after the warm-up."""
    gpu_memory_mib: int | None = None
    """On graphics cards, after the warm-up (``gpu_mib``); None where it uses none, or nobody can tell."""
    why: dict[str, str] = field(default_factory=dict)
    """Name of a field or of a session to why it is not what was asked for: one line, in English."""
    versions: dict[str, str] = field(default_factory=dict)
    network: str | None = field(default_factory=lambda: os.environ.get("ONDAM_NETWORK"))
    """What it was let have of a network, and what took the rest away; None where nobody did."""
    pid: int = field(default_factory=os.getpid)
    started_at: str = STARTED_AT
    schema: int = SCHEMA

    def write(self, path: Path) -> None:
        """Put the report at ``path``, readable by the owner alone. A reader sees all of it or nothing."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        temporary.touch(mode=0o600)
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
