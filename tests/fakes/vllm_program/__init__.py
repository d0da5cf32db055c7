"""The adapter of vLLM beside a program that behaves as vLLM does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ondam_engines.vllm
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.manifest import EngineFolder, read_engine

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings" / "vllm"

FOLDER = Path(ondam_engines.vllm.__file__ or "").parent


def engine_folder(case: str, **told: Any) -> EngineFolder:
    """vLLM's own folder, whose process finds the program here instead of the real one."""
    found = read_engine(FOLDER)
    speech = json.dumps({"recording": str(RECORDINGS / case), **told})
    launch = found.manifest.launch.model_copy(update={"env": {"PYTHONPATH": str(HERE), "FAKE_VLLM": speech}})
    return EngineFolder(FOLDER, found.manifest.model_copy(update={"launch": launch}))


def model(folder: Path) -> Path:
    """Made in ``folder``: as much of a checkpoint as the adapter itself reads."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def planned(checkpoint: Path, device: str = "cpu", **options: Any) -> PlannedEngine:
    """vLLM on ``device``, with the manifest's options and ``options`` on top."""
    manifest = read_engine(FOLDER).manifest
    return PlannedEngine(
        engine="vllm",
        stage="llm",
        model="tiny-qwen3",
        model_path=checkpoint,
        model_sha256=None,
        device=device,
        threads=2,
        language="en",
        options={**manifest.options, "context_length": 2048, **options},
    )
