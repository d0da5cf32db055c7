"""llama-cpp-python's server on a Unix socket: loads, answers one chat, reports, and only then listens."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import llama_cpp
import uvicorn
from llama_cpp import _ggml, llama_chat_format
from llama_cpp.server import app as server_app
from llama_cpp.server.settings import ModelSettings, ServerSettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ondam_engines.kit import launch, report
from ondam_engines.kit.ggml import computes_on
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.quiet import be_quiet, quiet_loop
from ondam_engines.kit.stale import clear_stale
from ondam_engines.llama_cpp.abort import StopFlag
from ondam_engines.llama_cpp.clients import App, Clients, Floor
from ondam_engines.llama_cpp.meter import Meter
from ondam_engines.llama_cpp.template import chat_template

QUEUE = 64
"""Connections that may wait to be accepted."""


def settings(given: launch.Launch) -> tuple[ServerSettings, ModelSettings]:
    """The server's settings and the model's, for this launch."""
    # Both read every variable of the environment that is named like a field of theirs: SEED, API_KEY, …
    fields = {*ServerSettings.model_fields, *ModelSettings.model_fields, "config_file"}
    for name in [name for name in os.environ if name.lower() in fields]:
        del os.environ[name]
    options = given.options
    kv_type = getattr(llama_cpp, f"GGML_TYPE_{options['cache_type'].upper()}")
    model = ModelSettings(
        model=str(given.model),
        model_alias=given.model_id,
        n_ctx=options["context_length"],
        n_batch=options["batch"],
        n_ubatch=options["batch"],
        n_threads=given.threads,
        n_threads_batch=given.threads,
        n_gpu_layers=0 if given.device == "cpu" else options["gpu_layers"],
        # A card with a number is the only one; "cuda" alone is all of them, layer by layer.
        split_mode=llama_cpp.LLAMA_SPLIT_MODE_NONE
        if ":" in given.device
        else llama_cpp.LLAMA_SPLIT_MODE_LAYER,
        main_gpu=int(given.device.partition(":")[2] or 0),
        type_k=kv_type,
        type_v=kv_type,
        flash_attn=options["flash_attention"],
        # Its default keeps the logits of every token of the context: 400 MB with SmolLM2.
        logits_all=False,
        use_mlock=False,
        verbose=False,
    )
    # Its default ends a running answer as soon as another request arrives.
    return ServerSettings(interrupt_requests=False, api_key=None), model


def prepared(given: launch.Launch, model: Any) -> Floor:
    """Put our template, meter and stop point into ``model`` (``llama_cpp.Llama``, which is untyped)."""
    # OpenMP keeps a team of threads for each thread that ever computed. Where they are more than the cores it
    # lets them sleep at each barrier: half the tokens a second. So it is always one thread that computes.
    computing = ThreadPoolExecutor(1, "compute")
    evaluate = model.eval
    model.eval = lambda tokens: computing.submit(evaluate, tokens).result()

    flag = StopFlag()
    callback = ctypes.cast(flag.function, llama_cpp.ggml_abort_callback)
    llama_cpp.llama_set_abort_callback(model.ctx, callback, flag.data)
    # llama.cpp keeps the bare addresses; the model keeps what is behind them.
    model.stop_flag = flag

    vocabulary = llama_cpp.llama_model_get_vocab(model.model)
    eos, bos = (
        llama_cpp.llama_vocab_get_text(vocabulary, token).decode() if token != -1 else ""
        for token in (model.token_eos(), model.token_bos())
    )
    template = chat_template(model.metadata, given.options["chat_template"])
    formatter = llama_chat_format.Jinja2ChatFormatter(template, eos, bos, stop_token_ids=[model.token_eos()])
    handler = formatter.to_chat_handler()
    floor = Floor(flag)
    # The server drops chat_template_kwargs from requests, so thinking is switched off for good, here.
    model.chat_handler = Meter(model, floor, time.monotonic).around(
        lambda **request: handler(**{"enable_thinking": False} | request | {"model": given.model_id})
    )
    return floor


def warm_up(model: Any, language: str) -> None:
    """One real chat: pages of the weights and graphs."""
    question = "안녕하세요? 오늘 기분이 어때요?" if language == "ko" else "Hello! How are you today?"
    chat = [{"role": "user", "content": question}]
    answer = model.create_chat_completion(chat, max_tokens=8, temperature=0)
    if "<think>" in (answer["choices"][0]["message"]["content"] or ""):
        print("this model thinks aloud although thinking is off", file=sys.stderr)


def devices(gpu_layers: int) -> list[str]:
    """The devices llama.cpp computes on: the CPU, and what else it was compiled for, if allowed."""
    ggml = _ggml.libggml
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_name.argtypes = [ctypes.c_void_p]
    ggml.ggml_backend_dev_name.restype = ctypes.c_char_p
    names = [
        ggml.ggml_backend_dev_name(ggml.ggml_backend_dev_get(number)).decode()
        for number in range(ggml.ggml_backend_dev_count())
    ]
    return [name for name in names if name == "CPU" or gpu_layers != 0]


def report_on(
    given: launch.Launch, path: Path, model: Any, model_settings: ModelSettings, loads: Loads
) -> report.Report:
    """What the engine really got."""
    got = devices(model_settings.n_gpu_layers)
    device, why = computes_on(given.device, got)
    return report.Report(
        engine="llama_cpp",
        device=device,
        threads=llama_cpp.llama_n_threads(model.ctx),
        model=report.Weights(given.model_id, str(path), report.sha256(path)),
        weight_loads=loads.count,
        dtype=given.options["cache_type"],
        quantization=llama_cpp.llama_ftype_name(llama_cpp.llama_model_ftype(model.model)).decode(),
        providers={"llama.cpp": got},
        context_length=model.n_ctx(),
        gpu_memory_mib=report.gpu_mib() if device.startswith("cuda") else None,
        why=why,
        versions=report.versions(["llama-cpp-python", "uvicorn"]),
    )


async def health(_request: Request) -> Response:
    """The socket exists only once the model is warm, so whoever reaches this may ask."""
    return JSONResponse({"status": "ok"})


class Server(uvicorn.Server):  # type: ignore[misc]
    """uvicorn without its signal handlers, which wait for running answers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to us."""
        yield


async def serve(app: App, path: Path) -> None:
    """Listen on ``path`` until SIGTERM or SIGINT, then end the process with status 0."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        path.unlink(missing_ok=True)
        # Streams are cut and the thread that computes is left where it is; nobody needs either any more.
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    # Bound by us: uvicorn widens the mode of a socket it binds itself to 0666.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(QUEUE)
        config = uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False)
        await Server(config).serve(sockets=[listener])


def main() -> None:
    """Serve until SIGTERM or SIGINT. While the weights load, SIGTERM has its default: the end, at once."""
    given = launch.parse()
    if given.model is None or not given.model.is_file():
        sys.exit(f"llama_cpp: no model file at {given.model}")
    clear_stale(given.socket)
    os.umask(0o177)
    server_settings, model_settings = settings(given)
    loads = Loads()
    # Where all of the package's ways to a model come through.
    library = llama_cpp.llama_cpp
    library.llama_model_load_from_file = loads.counted(library.llama_model_load_from_file)
    try:
        app = server_app.create_app(server_settings=server_settings, model_settings=[model_settings])
    except ValueError as error:
        sys.exit(f"llama_cpp: {given.model} could not be loaded: {error}")
    app.add_route("/health", health)
    asyncio.run(open_up(given, given.model, app, model_settings, loads))


async def open_up(
    given: launch.Launch, path: Path, app: Any, model_settings: ModelSettings, loads: Loads
) -> None:
    """Warm up, report, listen."""
    async with asynccontextmanager(server_app.get_llama_proxy)() as proxy:
        model = proxy()
        floor = prepared(given, model)
        warm_up(model, given.language)
        report_on(given, path, model, model_settings, loads).write(given.report)
    be_quiet()  # from now on it is told what people say
    quiet_loop(asyncio.get_running_loop())
    await serve(Clients(app, floor), given.socket)


if __name__ == "__main__":
    main()
