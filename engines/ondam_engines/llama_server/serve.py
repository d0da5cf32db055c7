"""llama.cpp's own server on a Unix socket: loads, answers one chat, reports, and only then can be found."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import xllamacpp

from ondam_engines.kit import launch, report
from ondam_engines.kit.ggml import computes_on
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.stale import clear_stale

WARM_UP_TIMEOUT_S = 110.0
"""Below the readiness limit of the manifest, so that the log says what was late."""

SPARE_HTTP_THREADS = 64
"""llama.cpp holds one thread for each open connection, and one that says nothing keeps it for 5 s: with 6
spare ones a chat waited 5 s behind 20 idle clients and 26 s behind 60, with 64 it does not wait. They cost no
memory."""


def parameters(given: launch.Launch, socket_path: Path) -> Any:
    """llama.cpp's parameters (``xllamacpp.CommonParams``, which is untyped) for this launch."""
    options = given.options
    p = xllamacpp.CommonParams()
    p.model.path = str(given.model)
    p.model_alias = {given.model_id}
    # llama.cpp takes a host name for a Unix socket when it ends in ".sock".
    p.hostnames = [str(socket_path)]
    p.offline = True
    p.ui = False
    p.n_threads_http = options["parallel"] + SPARE_HTTP_THREADS
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = given.threads

    # llama.cpp divides n_ctx among the slots.
    p.n_parallel = options["parallel"]
    p.n_ctx = options["context_length"] * options["parallel"]
    # Between two batches the server looks whether its client is still there, and not within one.
    p.n_batch = p.n_ubatch = options["batch"]
    p.cache_type_k = p.cache_type_v = getattr(
        xllamacpp.ggml_type, f"GGML_TYPE_{options['cache_type'].upper()}"
    )
    p.flash_attn_type = (
        xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        if options["flash_attention"]
        else xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    p.cache_prompt = True
    p.cache_ram_mib = options["cache_ram_mib"]
    p.n_gpu_layers = 0 if given.device == "cpu" else options["gpu_layers"]
    # A card with a number is the only one; "cuda" alone is all of them, layer by layer.
    modes = xllamacpp.llama_split_mode
    p.split_mode = modes.LLAMA_SPLIT_MODE_NONE if ":" in given.device else modes.LLAMA_SPLIT_MODE_LAYER
    p.main_gpu = int(given.device.partition(":")[2] or 0)
    # It would shrink the context to fit the memory without a word.
    p.fit_params = False

    # Thinking is off here as well as in each request: other tools on this machine use the same server.
    p.enable_reasoning = 0
    p.default_template_kwargs = {"enable_thinking": "false"}
    # Should a model think all the same, its thoughts go to reasoning_content and not into the answer.
    p.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_DEEPSEEK
    if options["chat_template"]:
        p.chat_template = Path(options["chat_template"]).read_text(encoding="utf-8")
    return p


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=WARM_UP_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of the host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, route: str, body: object = None) -> Any:
    """What the server answers, as JSON. Raises RuntimeError for any status but 200.

    One connection per request: llama.cpp drops the fourth stream on a kept-alive one.
    """
    connection = Connection(path)
    try:
        connection.request(method, route, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{route} answered {answer.status}: {text[:500]!r}")
        return json.loads(text)
    finally:
        connection.close()


def warm_up(path: Path, language: str) -> None:
    """One real chat over the socket: pages of the weights, graphs, and the threads that serve HTTP."""
    question = "안녕하세요? 오늘 기분이 어때요?" if language == "ko" else "Hello! How are you today?"
    chat = {"messages": [{"role": "user", "content": question}], "max_tokens": 8, "temperature": 0}
    message = ask(path, "POST", "/v1/chat/completions", chat)["choices"][0]["message"]
    if message.get("reasoning_content"):
        print("this model thinks aloud although thinking is off", file=sys.stderr)


def providers(gpu_layers: int) -> list[str]:
    """The devices llama.cpp computes on: the CPU, and the others it found if it was let use them."""
    names = [device["name"] for device in xllamacpp.get_device_info()]
    return [name for name in names if name == "CPU" or gpu_layers != 0]


def report_on(given: launch.Launch, model: Path, path: Path, p: Any, loads: Loads) -> report.Report:
    """What the server really got, as it tells itself where it does."""
    props = ask(path, "GET", "/props")
    devices = providers(p.n_gpu_layers)
    device, why = computes_on(given.device, devices)
    return report.Report(
        engine="llama_server",
        device=device,
        threads=p.cpuparams.n_threads,
        model=report.Weights(given.model_id, str(model), report.sha256(model)),
        weight_loads=loads.count,
        dtype=given.options["cache_type"],
        quantization=props["model_ftype"],
        providers={"llama.cpp": devices},
        context_length=props["default_generation_settings"]["n_ctx"],
        gpu_memory_mib=report.gpu_mib() if device.startswith("cuda") else None,
        why=why,
        versions=report.versions(["xllamacpp"]),
    )


def main() -> None:
    """Serve until SIGTERM or SIGINT, then end with status 0."""
    given = launch.parse()
    if given.model is None or not given.model.is_file():
        sys.exit(f"llama_server: no model file at {given.model}")
    if given.options["cache_type"] != "f16" and not given.options["flash_attention"]:
        sys.exit(
            f"llama_server: cache_type = {given.options['cache_type']!r} needs flash attention:"
            " set flash_attention = true beside it"
        )
    # llama.cpp listens before it has loaded: under a private name, which becomes the real one when warm.
    hidden = given.socket.with_name(f"{given.socket.stem}~.sock")
    clear_stale(given.socket)
    clear_stale(hidden)
    os.umask(0o177)

    p = parameters(given, hidden)
    # Holds the interpreter until the weights are loaded; so long, SIGTERM has its default: the end, at once.
    loads = Loads()
    try:
        server = loads.counted(xllamacpp.Server)(p)
    except RuntimeError as error:
        sys.exit(f"llama_server: {given.model} could not be loaded, for the reason above ({error})")
    stopped = wake_on(signal.SIGTERM, signal.SIGINT)
    warm_up(hidden, given.language)
    report_on(given, given.model, hidden, p, loads).write(given.report)
    hidden.rename(given.socket)

    stopped.recv(1)
    print(f"stopping {server}", file=sys.stderr, flush=True)
    given.socket.unlink(missing_ok=True)
    # The server's destructor waits for what is being generated; nobody else does any more.
    os._exit(0)


def wake_on(*signals: signal.Signals) -> socket.socket:
    """A socket that can be read once one of ``signals`` came.

    Python runs a handler in the main thread alone, but the kernel may deliver to any of llama.cpp's threads,
    and then a blocking call of the main thread is not interrupted. The wake-up descriptor works for them all.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return ours


if __name__ == "__main__":
    main()
