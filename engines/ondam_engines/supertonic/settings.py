"""The engine's options, checked: a wrong one ends the start with a line that says what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STEPS = range(1, 101)
"""Denoising steps that the package allows."""

SLOWEST, QUICKEST = 0.7, 2.0
"""Speeds that the package allows."""

PROVIDERS = ("tensorrt", "cuda")
DTYPES = ("float32", "float16")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options table of engine.toml."""

    voice: str
    steps: int
    speed: float
    pause_s: float
    seed: int
    provider: str
    dtype: str

    @classmethod
    def of(cls, options: Mapping[str, Any], device: str) -> Settings:
        """Raises ValueError on a value that is not allowed."""
        found = cls(**{name: options[name] for name in cls.__dataclass_fields__})
        _allow("steps", found.steps in STEPS, f"{STEPS[0]} to {STEPS[-1]}", found.steps)
        _allow("speed", SLOWEST <= found.speed <= QUICKEST, f"{SLOWEST} to {QUICKEST}", found.speed)
        _allow("pause_s", 0 <= found.pause_s <= 2, "0 to 2", found.pause_s)
        _allow("seed", found.seed >= 0, "0 and more", found.seed)
        _allow("provider", found.provider in PROVIDERS, " or ".join(PROVIDERS), found.provider)
        _allow("dtype", found.dtype in DTYPES, " or ".join(DTYPES), found.dtype)
        if found.dtype == "float16" and found.opens(device).partition(":")[0] != "tensorrt":
            raise ValueError("dtype float16 is for TensorRT; elsewhere the networks compute in float32")
        return found

    def opens(self, device: str) -> str:
        """The sessions' device: TensorRT is a way of computing on a CUDA card."""
        kind, _, card = device.partition(":")
        return f"tensorrt:{card or 0}" if kind == "cuda" and self.provider == "tensorrt" else device


def _allow(name: str, allowed: bool, range_of: str, found: object) -> None:
    if not allowed:
        raise ValueError(f"engines.supertonic.{name} may be {range_of}, not {found!r}")
