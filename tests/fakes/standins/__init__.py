"""Small models with random weights, made by code: real packages load them and run. They speak noise."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

from ondam.places import Places
from ondam.supervisor.environment import environment_folder
from ondam.supervisor.stamp import STAMP

MADE = ("supertonic",)
"""Engines whose model no package registry carries; each has a module here with ``build(folder)``."""

MADE_INSIDE = ("qwen_asr", "qwen_tts", "vllm")
"""Likewise; but only the engine's own packages can write one, so its Python runs the module here."""


def standin(engine: str, folder: Path, data: Places) -> Path | None:
    """What ``engine`` is given instead of its model, made below ``folder``; None where its model is real.

    ``data``: where the engine's environment is built.
    """
    if engine in MADE_INSIDE:
        return made_inside(engine, data)
    if engine not in MADE:
        return None
    built: Path = import_module(f"{__name__}.{engine}").build(folder / engine)
    return built


def made_inside(engine: str, data: Places, *how: str) -> Path:
    """The same, written by the engine's own packages, and kept until they or its module here change."""
    environment = environment_folder(engine, data)
    script = Path(__file__).with_name(f"{engine}.py")
    made_from = hashlib.sha256(script.read_bytes() + (environment / STAMP).read_bytes()).hexdigest()
    folder = data.state / "standins" / "".join([engine, *how])
    note = folder / "made-from"
    if not note.exists() or note.read_text() != made_from:
        shutil.rmtree(folder, ignore_errors=True)
        # As the engine itself is launched: compiled modules are kept, the folder of the script is no place to
        # import from, and nothing is looked for outside.
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
        command = [str(part) for part in (environment / "bin" / "python", "-P", script, folder, *how)]
        done = subprocess.run(
            command, env={**os.environ, **offline}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        note.write_text(made_from)
    return folder
