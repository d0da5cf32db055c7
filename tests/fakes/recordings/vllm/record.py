"""Runs a real ``vllm serve`` on a stand-in and keeps what it says. The recordings are never edited.

    python record.py PYTHON MODEL OUT CASE [ARGUMENT ...]

``PYTHON`` is that of the engine's environment.
``CASE`` names the folder below OUT. With ``--kill`` as the first argument the engine core is killed in the
end.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

QUESTION = [{"role": "user", "content": "Hello?"}]
STARTED_WITHIN_S = 300.0

ENV = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "OMP_NUM_THREADS": "2",
    "NO_COLOR": "1",
}


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, route: str, body: object = None) -> tuple[int, bytes]:
    connection = Connection(path)
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, route, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, f"{type(error).__name__}: {error}\n".encode()
    finally:
        connection.close()


def chat(path: Path, **more: object) -> tuple[int, bytes]:
    body = {"messages": QUESTION, "max_tokens": 24, "temperature": 0, "stream": True}
    body["stream_options"] = {"include_usage": True}
    return ask(path, "POST", "/v1/chat/completions", {**body, **more})


def main(python: str, model: str, out: Path, case: str, arguments: list[str]) -> None:
    kill = arguments[:1] == ["--kill"]
    arguments = arguments[kill:]
    folder = out / case
    folder.mkdir(parents=True, exist_ok=True)
    path = Path(os.environ.get("RECORDING_RUN", "/tmp")) / f"{case}.sock"
    path.unlink(missing_ok=True)
    vllm = [python, "-P", "-m", "ondam_engines.vllm.server"]
    command = [*vllm, "serve", model, "--served-model-name", "tiny-qwen3", "--uds", str(path), *arguments]
    (folder / "command.json").write_text(json.dumps(command, indent=1) + "\n")
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, **ENV},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        began = time.monotonic()
        while ask(path, "GET", "/health")[0] != 200:
            if process.poll() is not None:
                (folder / "status.txt").write_text(f"{process.returncode}\n")
                print(case, "ended with", process.returncode)
                return
            assert time.monotonic() - began < STARTED_WITHIN_S, "not healthy in time"
            time.sleep(0.5)
        print(case, f"healthy after {time.monotonic() - began:.0f} s")
        keep(folder, path)
        if kill:
            killed(folder, path, process)
    finally:
        end(process)


def keep(folder: Path, path: Path) -> None:
    """Every answer under the name of what was asked."""
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {"type": "json_schema", "json_schema": {"name": "form", "strict": True, "schema": schema}}
    for name, (status, body) in {
        "thinking-off.sse": chat(path, **off),
        "thinking-on.sse": chat(path),
        "form.sse": chat(path, **off, response_format=form),
        "too-long.json": chat(path, **off, messages=[{"role": "user", "content": "long " * 2000}]),
        "server_info.json": ask(path, "GET", "/server_info?config_format=json"),
        "metrics.txt": ask(path, "GET", "/metrics"),
        "models.json": ask(path, "GET", "/v1/models"),
        "version.json": ask(path, "GET", "/version"),
    }.items():
        (folder / name).write_bytes(body)
        print(" ", name, status, len(body))


def killed(folder: Path, path: Path, process: subprocess.Popen[bytes]) -> None:
    """The engine core dies while an answer is made; then what health says, for ten seconds."""
    family = psutil.Process(process.pid).children(recursive=True)
    cores = [child for child in family if "EngineCore" in " ".join([child.name(), *child.cmdline()])]
    print("  cores:", [(core.pid, core.name()) for core in cores])
    connection = Connection(path)
    body = {"messages": QUESTION, "max_tokens": 1500, "temperature": 0, "stream": True, "ignore_eos": True}
    body["chat_template_kwargs"] = {"enable_thinking": False}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    read = answer.read1(65536) + answer.read1(65536)
    for core in cores:
        core.send_signal(signal.SIGKILL)
    died = time.monotonic()
    try:
        while more := answer.read1(65536):
            read += more
    except (OSError, http.client.HTTPException) as error:
        print("  stream:", type(error).__name__, error)
    (folder / "cut.sse").write_bytes(read)
    lines = []
    while time.monotonic() - died < 10:
        status, said = ask(path, "GET", "/health")
        gone = process.poll()
        lines.append(f"{time.monotonic() - died:6.2f} s health {status} {said.decode()!r} process {gone}\n")
        time.sleep(0.25)
    (folder / "health.txt").write_text("".join(lines))
    (folder / "after.json").write_bytes(chat(path, stream=False)[1])


def end(process: subprocess.Popen[bytes]) -> None:
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
    for child in family:
        if child.is_running():
            child.kill()
    process.wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5:])
