"""Machines to plan for, and engines: manifests are written down here, models are the catalog's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ondam_engines
from ondam import config as configuration
from ondam.config import Config
from ondam.errors import ModelError
from ondam.models.card import ModelCard
from ondam.planner.choose import consider
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Stage

FOLDERS = Path(next(iter(ondam_engines.__path__)))

PART = {"package": "p", "version": "1", "sha256": "a" * 64, "member": "m"}


def embedded(name: str, stage: Stage, size: int, *languages: str, entry: str = ".") -> dict[str, Any]:
    """A card of a model that a package registry carries."""
    path = "model.bin" if stage == "stt" else "m"
    file = {"path": path, "size": size, "sha256": "a" * 64, "parts": [PART]}
    return {
        "id": name,
        "stage": stage,
        "languages": list(languages),
        "licence": "MIT",
        "entry": entry,
        "files": [file],
    }


def models(name: str) -> list[dict[str, Any]]:
    """What ``models.toml`` in an engine's folder declares."""
    cards: list[dict[str, Any]] = tomllib.loads((FOLDERS / name / "models.toml").read_text("utf-8"))["models"]
    return cards


def engine(
    name: str,
    stage: Stage,
    devices: list[str],
    memory_mib: int,
    cards: list[dict[str, Any]],
    *,
    locks: tuple[str, ...] = ("cpu",),
    drivers: Mapping[str, str] | None = None,
    languages: tuple[str, ...] = ("ko", "en"),
    options: Mapping[str, Any] | None = None,
    **needs: bool,
) -> EngineFolder:
    """An engine's folder that is not on the disk."""
    manifest = Manifest.model_validate(
        {
            "name": name,
            "stage": stage,
            "protocol": "openai" if stage == "llm" else "wyoming",
            "licence": "MIT",
            "summary_en": "-",
            "summary_ko": "-",
            "launch": {"command": ["x"]},
            "environment": {"locks": {lock: f"{lock}.lock" for lock in locks}, "drivers": drivers or {}},
            "capabilities": {"languages": list(languages)},
            "needs": {"devices": devices, "memory_mib": memory_mib, **needs},
            "limits": {"busy_after_cancel_ms": 1},
            "options": options or {},
            "models": cards,
        }
    )
    return EngineFolder(Path("/engines") / name, manifest)


WHISPER = embedded("whisper-base", "stt", 148_000_000, "ko", "en")
SMOLLM = embedded("smollm2-135m-instruct", "llm", 98_000_000, "en", entry="m.gguf")
JOE = embedded("joe", "tts", 63_000_000, "en", entry="m.onnx")

LLAMA = {"context_length": 4096, "cache_type": "f16"}

ENGINES = {
    found.name: found
    for found in (
        engine(
            "faster_whisper",
            "stt",
            ["cpu", "cuda"],
            320,
            [WHISPER, *models("faster_whisper")],
            locks=("cpu", "cu12"),
            options={"compute_type": "int8"},
        ),
        engine(
            "llama_server",
            "llm",
            ["cpu"],
            520,
            [SMOLLM, *models("llama_server")],
            options={**LLAMA, "parallel": 2},
        ),
        engine(
            "llama_cpp",
            "llm",
            ["cpu", "cuda", "metal", "vulkan"],
            320,
            [],
            options={**LLAMA, "gpu_layers": -1},
            several_cards=True,
            one_at_a_time=True,
            spills=True,
        ),
        engine(
            "vllm",
            "llm",
            ["cuda"],
            2000,
            models("vllm"),
            locks=("cu13",),
            drivers={"cu13": "580"},
            options={"kv_cache_memory_bytes": 0, "kv_cache_dtype": "auto"},
        ),
        engine(
            "qwen_asr",
            "stt",
            ["cpu", "cuda"],
            2000,
            models("qwen_asr"),
            locks=("cpu", "cu13", "cu128"),
        ),
        engine("supertonic", "tts", ["cpu", "cuda"], 500, models("supertonic"), locks=("cpu", "cu13")),
        engine("qwen_tts", "tts", ["cpu", "cuda"], 2000, models("qwen_tts"), locks=("cpu", "cu13")),
        engine("piper", "tts", ["cpu"], 280, [JOE], languages=("en",)),
        engine("espeak", "tts", ["cpu"], 60, []),
    )
}


class Shelf:
    """Models by name; ``here``: those on the disk, None for all."""

    def __init__(self, *cards: ModelCard, here: set[str] | None = None) -> None:
        self.cards = {card.id: card for folder in ENGINES.values() for card in folder.manifest.models}
        self.cards |= {card.id: card for card in cards}
        self.here = here
        self.files: dict[str, dict[str, int]] = {}
        """Weights that the user names by where they lie, with the size of each file."""

    def find(self, model_id: str) -> tuple[Path, str | None]:
        if model_id not in self.cards:
            raise ModelError("model_unknown", id=model_id)
        return Path("/models") / model_id, None

    def ready(self, model_id: str) -> bool:
        return self.here is None or model_id in self.here

    def card(self, model_id: str) -> ModelCard | None:
        return self.cards.get(model_id)

    def weights(self, path: Path) -> dict[str, int]:
        return self.files.get(str(path), {})


def gpu(vram: float, driver: str = "580.65.06", capability: str = "8.9", **more: Any) -> dict[str, Any]:
    """A card with nobody else on it."""
    return {
        "name": f"{vram:g} GB card",
        "vram_gib": vram,
        "free_gib": vram,
        "driver": driver,
        "compute_capability": capability,
        **more,
    }


def machine(*gpus: dict[str, Any], ram: float = 64, **more: Any) -> Facts:
    """A Linux machine with 16 cores."""
    given = {
        "os": "linux",
        "arch": "x86_64",
        "cpu": {"cores": 16, "flags": ["avx2"]},
        "ram_gib": ram,
        "gpus": list(gpus),
        **more,
    }
    return Facts.from_json(given, "test")


def config(language: str = "ko", **tables: Any) -> Config:
    return configuration.load(None, {"language": language, **tables})


def plan(
    facts: Facts, language: str = "ko", *, shelf: Shelf | None = None, ahead: bool = True, **tables: Any
) -> Plan:
    """As ``ondam plan`` makes it."""
    return consider(facts, config(language, **tables), ENGINES, shelf or Shelf(), ahead=ahead)
