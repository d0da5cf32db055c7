"""Reports and figures made by a process of its own.

Twenty thousand turns take two seconds of computing and fifty megabytes. In the daemon both would come at
the cost of the turn that runs meanwhile (Python has one lock), so that asking how quick it is would make it
slower.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from ondam.errors import JournalError
from ondam.journal.reading import Selection
from ondam.supervisor.leash import leashed
from ondam.types import Language

NICENESS = 10
"""Whatever speaks and listens goes first."""


async def report_apart(journal: Path, selection: Selection, language: Language) -> dict[str, Any]:
    """What ``ondam report --json`` says of ``journal``. Cancelling ends the process. Raises JournalError."""
    command = [sys.executable, "-m", "ondam", "report", "--json", "--journal", str(journal)]
    command += ["--most", str(selection.most)]
    for name, value in (
        ("since", selection.since and selection.since.isoformat()),
        ("until", selection.until and selection.until.isoformat()),
        ("session", selection.session),
        ("plan", selection.plan),
    ):
        if value:
            command.append(f"--{name}={value}")
    return await made_apart(command, {**os.environ, "ONDAM_LANGUAGE": language})


async def made_apart(command: Sequence[str], environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON object that ``command`` prints. Cancelling ends the process.

    Where it fails it prints ``{"error": {"text": …}}``, or says why on stderr: raises JournalError
    ``report_failed`` with that.
    """
    process = await asyncio.create_subprocess_exec(
        *leashed(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
    )
    try:
        with suppress(psutil.NoSuchProcess):  # it has ended already, and says why
            psutil.Process(process.pid).nice(NICENESS)
        out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        made = json.loads(out)
    except ValueError:
        made = {"error": {"text": errors.decode("utf-8", "replace").strip()[-400:]}}
    if process.returncode != 0 or "error" in made:
        reason = made.get("error", {}).get("text") or f"status {process.returncode}"
        raise JournalError("report_failed", reason=reason)
    return dict(made)
