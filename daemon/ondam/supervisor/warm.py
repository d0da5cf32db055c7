"""Lets an engine compute what it keeps for this machine (``launch.warm``), while nobody waits for it."""

from __future__ import annotations

import collections
import os
import re
import signal
import subprocess
from pathlib import Path

from ondam.errors import EngineError
from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.environment import Progress, installed
from ondam.supervisor.family import Identity
from ondam.supervisor.launch import launch
from ondam.supervisor.leash import leashed
from ondam.supervisor.manifest import EngineFolder

STEP = re.compile(r"\[(\d+)/(\d+)\]\s*(.*)")
"""What the command prints: docs/engines.md."""

ERROR = "error: "

KEPT_LINES = 20
"""Of the end of what it said, to tell why it failed."""


def warm(
    engine: EngineFolder,
    planned: PlannedEngine,
    places: Places,
    *,
    isolated: bool,
    required: bool = False,
    progress: Progress,
    log: Path,
    look: bool = False,
) -> None:
    """Run ``engine``'s ``launch.warm`` as ``planned`` and wait for its end. Its output goes to ``log``.
    ``isolated``, ``required``: as in ``launch``. ``look``: run ``launch.warmed``, which makes nothing.

    Blocks, for minutes. Ctrl-C ends it; what it had made is made anew the next time. Raises EngineError
    ``engine_warm_failed`` with what it said last, ``engine_not_built`` without an environment.
    """
    own = engine.manifest.launch
    command = own.warmed if look else own.warm
    manifest = engine.manifest.model_copy(update={"launch": own.model_copy(update={"command": command})})
    started = launch(
        planned,
        manifest=manifest,
        home=installed(engine, places),
        places=places,
        daemon=Identity.of(os.getpid()),
        environ=os.environ,
        isolated=isolated,
        required=required,
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    end: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            leashed(started.command, started.network, required=started.required),
            cwd=started.folder,
            env=dict(started.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                output.write(line)
                output.flush()
                end.append(line.strip())
                if step := STEP.match(line):
                    progress.step(step[3], int(step[1]), int(step[2]))
        except BaseException:
            # Ctrl-C, or a display that failed: it must not go on alone.
            os.killpg(process.pid, signal.SIGTERM)
            raise
    if process.returncode != 0:
        told = next((line for line in reversed(end) if line.startswith(ERROR)), end[-1] if end else "")
        reason = told.removeprefix(ERROR) or f"status {process.returncode}"
        raise EngineError("engine_warm_failed", engine=engine.name, reason=reason[:300], log=log)
