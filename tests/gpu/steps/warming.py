"""TensorRT builds its engines for Supertonic's stand-in, as ``ondam engines warm supertonic`` has it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from tests.gpu.engine import command, environment, manifest
from tests.gpu.step import Found, Given

CACHE = "engine-cache"
"""Below the work folder; ``speech`` starts from it."""


def check(given: Given) -> Found:
    """Seconds, and what lies in the cache behind it. On a processor: that it is refused in words."""
    if "supertonic" not in given.pythons:
        return Found(skipped="no environment of supertonic")
    if "supertonic" not in given.models:
        return Found(skipped="no stand-in for Supertonic's model")
    if not given.rehearsal and not given.tensorrt:
        return Found(skipped="TensorRT is not here")
    cache, folder = given.made(CACHE), given.made("warming")
    told = command(
        "supertonic",
        "warm",
        given,
        {
            "socket": str(folder / "none.sock"),
            "report": str(folder / "none.json"),
            "device": f"cuda:{given.card}",
            "options": json.dumps({**manifest("supertonic")["options"], "provider": "tensorrt"}),
            "cache": str(cache),
        },
    )
    began = time.monotonic()
    with subprocess.Popen(
        told, env=environment(given), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            print(line.rstrip())
            said.append(line.strip())
    took = round(time.monotonic() - began, 1)
    found = Found(facts={"seconds": took, "files": files(cache), "said": said[-1:]})
    if given.rehearsal:
        if process.returncode == 0 or not any(line.startswith("error: no TensorRT") for line in said):
            found.differs.append(f"without a card it ended with {process.returncode}: {said[-1:]}")
        return found
    if process.returncode != 0:
        found.differs.append(f"ended with status {process.returncode}: {' '.join(said[-1:])}")
    elif not any(name.endswith(".engine") for name in found.facts["files"]):
        found.differs.append("no engine lies in the cache")
    return found


def files(cache: Path) -> dict[str, int]:
    """Everything below the cache: path to bytes."""
    return {
        str(path.relative_to(cache)): path.stat().st_size
        for path in sorted(cache.rglob("*"))
        if path.is_file()
    }
