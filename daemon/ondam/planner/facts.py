"""What is known of the machine. Read by ``probe``; a test writes one down."""

from __future__ import annotations

from dataclasses import dataclass


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
