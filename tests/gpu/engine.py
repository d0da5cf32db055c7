"""An engine's own process, started as its manifest says and asked in its own protocol.

Standard library alone: the daemon's own launching needs packages that a bare machine lacks.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tests.gpu.step import ROOT, Given

ENGINES = ROOT / "engines" / "ondam_engines"

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""As the daemon gives to every engine."""

LEASH = ROOT / "daemon" / "ondam" / "supervisor" / "leash.py"
"""Takes the network away from a process before it becomes an engine; of the standard library, as it must be
here."""

STRANGE = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "LD_PRELOAD")


def manifest(engine: str) -> dict[str, Any]:
    """Its ``engine.toml``."""
    return tomllib.loads((ENGINES / engine / "engine.toml").read_text("utf-8"))


def environment(given: Given, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of an engine's process."""
    # No path for TensorRT's libraries: that the engine finds them is part of what is checked.
    found = {name: text for name, text in os.environ.items() if name not in STRANGE}
    return {**found, **OFFLINE, "OMP_NUM_THREADS": str(given.threads), **(more or {})}


def command(engine: str, which: str, given: Given, values: Mapping[str, str]) -> list[str]:
    """``launch.command`` or ``launch.warm`` with its placeholders filled in, cut off from the network."""
    known = {
        "python": given.pythons[engine],
        "folder": str(ENGINES / engine),
        "model": given.models[engine],
        "model_id": f"{engine}-check",
        "threads": str(given.threads),
        "language": "ko",
        "quantization": "",
        **values,
    }
    launch = manifest(engine)["launch"]
    filled = [re.sub(r"\{([a-z_]+)\}", lambda match: known[match[1]], part) for part in launch[which]]
    # As the daemon starts it, so that CUDA is tried under what keeps an engine from the network.
    network = launch.get("network", "none")
    return [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), network, "possible", *filled]


def open_to(report: Mapping[str, Any]) -> list[str]:
    """That nothing kept it from the network, where something could have: any kernel has a filter."""
    network, *means = str(report.get("network") or "none").split()
    print(f"network: {network}, by {', '.join(means) or 'nothing'}")
    return [] if means else ["it ran without what keeps an engine from the network"]


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that listens."""

    socket: Path
    report: dict[str, Any]
    ready_s: float
    """From its start until it listened, its warm-up included."""
    log: Path


class NotReady(Exception):
    """It ended or took too long; the text has what it said last."""


@contextmanager
def running(engine: str, given: Given, limit_s: float, **values: str) -> Iterator[Running]:
    """Started, ready, and ended behind. ``values``: ``device``, ``options``, ``cache`` and others.

    Raises NotReady.
    """
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:  # short: a socket's path has 107 bytes
        place, written = Path(folder) / "s.sock", Path(folder) / "report.json"
        log = given.made("logs") / f"{engine}-{time.time_ns() // 1_000_000}.log"
        told = command(engine, "command", given, {"socket": str(place), "report": str(written), **values})
        began = time.monotonic()
        with log.open("wb") as output:
            # In the group of the step, with which it ends.
            process = subprocess.Popen(
                told,
                env=environment(given, manifest(engine)["launch"].get("env")),
                cwd=given.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            while not _listens(place):
                if (status := process.poll()) is not None:
                    raise NotReady(f"{engine} ended with status {status}: {_last(log)}")
                if time.monotonic() - began > limit_s:
                    raise NotReady(f"{engine} was not ready after {limit_s:.0f} s: {_last(log)}")
                time.sleep(0.01)
            ready_s = time.monotonic() - began
            report = json.loads(written.read_text("utf-8"))
            yield Running(place, report, ready_s, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _listens(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(str(place))
        return True
    return False


def _last(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-600:]


@dataclass(frozen=True, slots=True)
class Spoken:
    """One text, said."""

    first_ms: float
    """From the request to the first samples."""
    all_ms: float
    samples: int
    peak: int
    """Of 16-bit samples."""


def speak(place: Path, text: str, language: str, limit_s: float = 30.0) -> Spoken:
    """One Wyoming request on a connection of its own. Raises OSError, ValueError with the engine's error."""
    began = time.monotonic()
    first = 0.0
    sound = bytearray()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(limit_s)
        line.connect(str(place))
        data = json.dumps({"text": text, "voice": {"language": language}}).encode()
        line.sendall(json.dumps({"type": "synthesize", "data_length": len(data)}).encode() + b"\n" + data)
        with line.makefile("rb") as answers:
            while True:
                kind, told, payload = _event(answers)
                if kind == "audio-chunk":
                    first = first or time.monotonic()
                    sound += payload
                elif kind == "audio-stop":
                    break
                elif kind == "error":
                    raise ValueError(str(told.get("text")))
    ended = time.monotonic()
    heard = memoryview(bytes(sound)).cast("h")
    peak = max(map(abs, heard), default=0)
    return Spoken(((first or ended) - began) * 1000, (ended - began) * 1000, len(heard), peak)


def _event(answers: BinaryIO) -> tuple[str, dict[str, Any], bytes]:
    line = answers.readline()
    if not line:
        raise ValueError("the engine hung up")
    event = json.loads(line)
    data = {**(event.get("data") or {})}
    if size := event.get("data_length"):
        data |= json.loads(answers.read(size))
    return event["type"], data, answers.read(event.get("payload_length") or 0)


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, place: Path, limit_s: float) -> None:
        super().__init__("localhost", timeout=limit_s)
        self._place = place

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._place))


def chat(place: Path, model: str, text: str, limit_s: float = 60.0) -> tuple[float, float, str]:
    """A streamed answer of at most 48 tokens: ms to the first piece, ms to the end, and what it says.

    Raises OSError, ValueError.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 48,
        "temperature": 0,
        "stream": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    began = time.monotonic()
    first, said = 0.0, ""
    connection = _OverSocket(place, limit_s)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}: {answer.read(300)!r}")
        for line in answer:
            told = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            for choice in told.get("choices", ()):
                if piece := choice.get("delta", {}).get("content"):
                    first = first or time.monotonic()
                    said += piece
    finally:
        connection.close()
    ended = time.monotonic()
    return ((first or ended) - began) * 1000, (ended - began) * 1000, said
