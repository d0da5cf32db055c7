"""From a planned engine to a command and an environment. What each placeholder becomes: docs/engines.md."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ondam.errors import EngineError
from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.family import DAEMON, ENGINE, INSTANCE, Identity
from ondam.supervisor.manifest import Manifest
from ondam.supervisor.offline import handed_on, offline
from ondam.supervisor.process import Launch

STRANGE_PATHS = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "LD_PRELOAD")
"""Not handed on: each would put something else before the engine's own environment."""

BUS_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""``cuda:0`` is the card that the planner saw first: NVIDIA's driver counts by bus, CUDA by speed unless told
otherwise."""

WAIT_PASSIVE = {"stt": {"OMP_WAIT_POLICY": "PASSIVE"}}
"""Idle OpenMP threads of the recognizer sleep instead of spinning. For the language model the same
makes its first clause three times slower (docs/decisions/supervision.md)."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where an engine's program is."""

    python: Path
    """The interpreter of its environment."""
    folder: Path
    """Its folder inside that environment."""


def launch(
    planned: PlannedEngine,
    *,
    manifest: Manifest,
    home: Home,
    places: Places,
    daemon: Identity,
    environ: Mapping[str, str],
    isolated: bool,
    required: bool = False,
    berth: str = "",
) -> Launch:
    """How ``planned`` is started. ``environ``: the daemon's own variables, which it inherits in part.
    ``isolated``: with the network that its manifest names, and no other; ``required``: or not at all
    (``supervisor.isolation``).
    ``berth``: what the names of its files end in, and its mark.

    Raises EngineError on a placeholder that does not exist.
    """
    name = planned.engine + berth
    values = {
        "python": str(home.python),
        "folder": str(home.folder),
        "socket": str(places.engine_socket(name)),
        "report": str(places.engine_report(name)),
        "model": "" if planned.model_path is None else str(planned.model_path),
        "model_id": planned.model,
        "device": planned.device,
        "threads": str(planned.threads),
        "language": planned.language,
        "options": json.dumps(planned.options, ensure_ascii=False),
        "cache": str(places.engine_cache(planned.engine)),
        "quantization": planned.quantization,
    }

    def filled(text: str) -> str:
        # Not str.format: braces that are no placeholder (JSON in an argument) stay as they are.
        return re.sub(r"\{([a-z_]+)\}", lambda match: value(match[1]), text)

    def value(placeholder: str) -> str:
        if placeholder not in values:
            raise EngineError("engine_placeholder_unknown", engine=planned.engine, name=placeholder)
        return values[placeholder]

    marks = {INSTANCE: places.runtime.name, DAEMON: str(daemon), ENGINE: name}
    threads = str(planned.threads)
    env = {
        **{name: text for name, text in handed_on(environ).items() if name not in STRANGE_PATHS},
        **offline(),
        **BUS_ORDER,
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Features are computed with it, on small arrays, where its spinning threads only cost.
        "OPENBLAS_NUM_THREADS": "1",
        **WAIT_PASSIVE.get(planned.stage, {}),
        **{name: filled(text) for name, text in manifest.launch.env.items()},
        **marks,
    }
    return Launch(
        name=planned.engine,
        command=[filled(part) for part in manifest.launch.command],
        env=env,
        marks=marks,
        folder=home.folder,
        pidfile=places.runtime / f"engine-{name}.pid",
        network=manifest.launch.network if isolated else "open",
        required=required,
    )
