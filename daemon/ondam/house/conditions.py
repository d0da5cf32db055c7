"""The conditions under which this daemon's numbers are made."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from ondam import __version__
from ondam.config import Config, LlmConfig
from ondam.house.switchboard import STAGES
from ondam.messages import Phrase
from ondam.planner.plan import Plan
from ondam.planner.probe import on_battery
from ondam.supervisor.crew import Crew
from ondam.supervisor.status import EngineStatus
from ondam.types import Language

REPORTED = (
    "dtype",
    "quantization",
    "threads",
    "providers",
    "cuda_graphs",
    "context_length",
    "weight_loads",
    "versions",
)
"""Of an engine's own report (docs/engines.md)."""

REPORTED_SINCE = ("nodes", "graph_mode", "kv_dtype")
"""Likewise, where it says something: older engines do not, and their conditions are to stay the same."""

DIFFERS = ("what", "wanted", "got", "why")
"""Of a fault that ``supervisor.comparison`` found. ``why``: what the engine says about it, if anything."""


def lasting_of(config: Config, language: Language, plan: Plan, crew: Crew) -> dict[str, Any]:
    """What stays the same from turn to turn while the configuration and what the engines got do."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": psutil.cpu_count(),
        "language": language,
        "endpoint": config.endpoint.model_dump(),
        "drafts": config.drafts.model_dump(),
        "max_tokens": config.llm.max_tokens,
        "history_turns": config.llm.history_turns,
        "temperature": config.llm.temperature,
        "prompt": _prompt(config.llm, language),
        "names": len(config.stt.names),
        "budget_ms": config.measure.budget_ms,
        "settling": config.measure.model_dump(exclude={"budget_ms"}),
        "thinking": any(f.code == "engine_thinks" for engine in crew.status() for f in engine.faults),
        "engines": {
            engine.stage: _engine(engine) for stage in STAGES if (engine := crew.engine(stage)) is not None
        },
        "threads": {planned.engine: planned.threads for planned in plan.launched},
        "options": {planned.engine: dict(planned.options) for planned in plan.launched},
    }


def _prompt(llm: LlmConfig, language: Language) -> dict[str, Any]:
    """What every request begins with, by its length and hash: the words are the user's own."""
    told = llm.system_prompt(language)
    return {"characters": len(told), "tools": len(llm.definitions()), "sha256": _hash(told, llm.tools)}


@cache
def _hash(words: str, tools: str) -> str:
    """Of both; the file is read once, as the one who sends it does."""
    sent = Path(tools).expanduser().read_bytes() if tools else b""
    return hashlib.sha256(words.encode() + b"\0" + sent).hexdigest()[:16]


def at_the_moment() -> dict[str, Any]:
    """What may be different in the next turn."""
    power = "battery" if on_battery() else "mains"
    return {"load_average_1min": round(os.getloadavg()[0], 2), "power": power}


def _engine(engine: EngineStatus) -> dict[str, Any]:
    report = engine.report or {}
    model = report.get("model")
    return {
        "name": engine.name,
        "model": engine.model,
        "sha256": model.get("sha256") if isinstance(model, dict) else None,
        "model_mib": None if engine.model_path is None else _mib(engine.model_path),
        "device": engine.device,
        "outside": engine.outside,
        **{key: report.get(key) for key in REPORTED},
        **{key: report[key] for key in REPORTED_SINCE if report.get(key)},
        "differs": [
            {key: told for key in DIFFERS if (told := _plain(fault.facts.get(key))) or key != "why"}
            for fault in engine.faults
            if "what" in fault.facts  # of the report's comparison; other faults name no such thing
        ],
    }


@cache
def _mib(path: Path) -> int | None:
    """Of a file, or of all files in a folder; looked at once."""
    try:
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        return round(sum(file.stat().st_size for file in files) / 2**20)
    except OSError:
        return None  # the engine has it, and that is what counts


def _plain(value: object) -> object:
    if isinstance(value, Phrase):
        value = value.facts.get("why")  # an engine's own words; else it is "nothing", and stays that
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
