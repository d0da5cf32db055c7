"""The adapter as the real process that it is, beside a program that behaves as a recorded run did."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fakes.vllm_program import RECORDINGS, engine_folder, model, planned

from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.comparison import differences
from ondam.supervisor.family import Identity
from ondam.supervisor.launch import Home, launch
from ondam.supervisor.report import read_report
from ondam_engines.kit.unix_http import ask

WITHIN_S = 20.0


class Adapter:
    """One launch, by the manifest's own command."""

    def __init__(self, folder: Path, plan: PlannedEngine, case: str, **told: Any) -> None:
        self.plan = plan
        self.note = folder / "note.json"
        engine = engine_folder(case, file=str(self.note), **told)
        places = Places(folder, folder, folder, folder)
        self.socket, self.report = places.engine_socket("vllm"), places.engine_report("vllm")
        made = launch(
            plan,
            manifest=engine.manifest,
            home=Home(Path(sys.executable), engine.path),
            places=places,
            daemon=Identity.of(os.getpid()),
            environ=os.environ,
            isolated=True,
        )
        self.process = subprocess.Popen(
            made.command, env=dict(made.env), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )

    def until(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + WITHIN_S
        while not true():
            assert time.monotonic() < end, "it never came true"
            time.sleep(0.01)

    def ready(self) -> Adapter:
        self.until(lambda: self.socket.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()[1]
        return self

    def core(self) -> psutil.Process:
        return psutil.Process(json.loads(self.note.read_text())["core"])

    def arguments(self) -> list[str]:
        found: list[str] = json.loads(self.note.read_text())["arguments"]
        return found

    def end(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                child.kill()
        self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


def gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Adapter]]:
    running: list[Adapter] = []

    def begin(case: str = "graphs", options: dict[str, Any] | None = None, **told: Any) -> Adapter:
        plan = planned(model(tmp_path / "m"), **(options or {}))
        running.append(Adapter(tmp_path, plan, case, **told))
        return running[-1]

    yield begin
    for adapter in running:
        adapter.end()


def test_it_reports_what_vllm_got_and_only_then_can_be_found(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    report = read_report(adapter.report, "vllm")
    assert differences(adapter.plan, report) == ()
    assert {
        name: report[name]
        for name in (
            "engine",
            "device",
            "dtype",
            "quantization",
            "kv_dtype",
            "context_length",
            "weight_loads",
        )
    } == {
        "engine": "vllm",
        "device": "cpu",
        "dtype": "bf16",
        "quantization": "bf16",
        "kv_dtype": "bf16",
        "context_length": 2048,
        "weight_loads": 1,
    }
    assert report["pid"] == adapter.process.pid
    assert adapter.report.stat().st_ctime_ns <= adapter.socket.stat().st_ctime_ns
    assert adapter.socket.stat().st_mode & 0o077 == 0
    assert adapter.arguments()[:2] == ["serve", str(adapter.plan.model_path)]
    assert ask(adapter.socket, "GET", "/health")[0] == 200


def test_eager_is_told_as_lost_graphs(start: Callable[..., Adapter]) -> None:
    adapter = start("eager").ready()
    faults = differences(adapter.plan, read_report(adapter.report, "vllm"))
    assert [fault.code for fault in faults] == ["engine_lost_graphs"]


def test_eager_that_was_asked_for_is_no_fault(start: Callable[..., Adapter]) -> None:
    adapter = start("eager", {"cuda_graphs": False}).ready()
    assert "--enforce-eager" in adapter.arguments()
    assert differences(adapter.plan, read_report(adapter.report, "vllm")) == ()


def test_the_public_socket_shows_no_inside(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    for path in ("/collective_rpc", "/server_info", "/ondam/vllm_config"):
        assert ask(adapter.socket, "GET", path)[0] == 404
        assert ask(adapter.socket, "POST", path, {"method": "x"})[0] == 404


def test_the_first_request_is_real_and_asks_for_no_thoughts(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    status, body = ask(adapter.socket, "POST", "/v1/chat/completions", chat)
    assert (status, json.loads(body)["asked"]) == (200, chat)


def test_streams_carry_timings(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    _, body = ask(adapter.socket, "POST", "/v1/chat/completions", {"messages": [], "stream": True})
    assert body.count(b'"timings":{"prompt_ms":') > 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_ends_with_all_of_vllm(start: Callable[..., Adapter], number: signal.Signals) -> None:
    adapter = start().ready()
    core = adapter.core()
    began = time.monotonic()
    adapter.process.send_signal(number)
    assert adapter.process.wait(WITHIN_S) == 0
    assert time.monotonic() - began < 2
    adapter.until(lambda: gone(core))
    assert not adapter.socket.exists()


def test_killed_it_takes_all_of_vllm_with_it(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    (server,) = psutil.Process(adapter.process.pid).children()
    core = adapter.core()
    adapter.process.kill()
    adapter.until(lambda: gone(server) and gone(core))


def test_killed_while_vllm_loads_it_takes_all_of_it_with_it(start: Callable[..., Adapter]) -> None:
    adapter = start(loads=True)
    adapter.until(adapter.note.exists)
    adapter.until(adapter.note.read_text)
    (server,) = psutil.Process(adapter.process.pid).children()
    core = adapter.core()
    adapter.process.kill()
    adapter.until(lambda: gone(server) and gone(core))


def test_asked_to_end_while_vllm_loads_it_ends(start: Callable[..., Adapter]) -> None:
    adapter = start(loads=True)
    adapter.until(adapter.note.exists)
    adapter.until(adapter.note.read_text)
    core = adapter.core()
    adapter.process.terminate()
    assert adapter.process.wait(2) == 0
    adapter.until(lambda: gone(core))


def test_vllm_that_ends_while_loading_is_told_with_its_status(start: Callable[..., Adapter]) -> None:
    adapter = start(ends=3)
    assert adapter.process.wait(WITHIN_S) == 1
    said = adapter.process.communicate()[1]
    assert "vLLM ended with status 3 while it started" in said
    assert "Initializing a V1 LLM engine" in said  # its own words come before
    assert gone(adapter.core())


def test_what_ended_a_recorded_run_is_its_last_word(start: Callable[..., Adapter]) -> None:
    adapter = start("fp8", ends=int((RECORDINGS / "fp8" / "status.txt").read_text()))
    assert adapter.process.wait(WITHIN_S) == 1
    last = adapter.process.communicate()[1].splitlines()[-1]
    assert last.startswith("vllm: vLLM ended with status 1 while it started: RuntimeError: _C::static_scaled")


def test_vllm_that_ends_later_ends_it_too_also_with_status_0(start: Callable[..., Adapter]) -> None:
    adapter = start().ready()
    (server,) = psutil.Process(adapter.process.pid).children()
    core = adapter.core()
    server.terminate()
    assert adapter.process.wait(WITHIN_S) == 1
    adapter.until(lambda: gone(core))
    assert not adapter.socket.exists()


def test_options_that_cannot_be_meant_are_told_in_a_line(start: Callable[..., Adapter]) -> None:
    adapter = start(options={"speculation": "eagle"})
    _, said = adapter.process.communicate(timeout=WITHIN_S)
    assert adapter.process.returncode == 1
    assert said.strip() == "vllm: speculation must be one of off, ngram, mtp, not 'eagle'"


def test_a_folder_that_is_no_checkpoint_is_told_in_a_line(
    start: Callable[..., Adapter], tmp_path: Path
) -> None:
    model(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    plan = planned(tmp_path / "m")
    adapter = Adapter(tmp_path, plan, "graphs")
    _, said = adapter.process.communicate(timeout=WITHIN_S)
    assert adapter.process.returncode == 1
    assert said.startswith("vllm: no *.safetensors in ")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "body",
    ["<html>", "[]", "[" * 50_000, '{"choices": []}', '{"choices": [{"message": "Hello"}]}', "9" * 5000],
    ids=["page", "list", "deep", "none", "text", "digits"],
)
def test_an_answer_without_a_message_is_told_in_a_line(start: Callable[..., Adapter], body: str) -> None:
    adapter = start(bodies={"/v1/chat/completions": body})
    told = adapter.process.communicate(timeout=WITHIN_S)[1]
    assert adapter.process.returncode == 1
    assert "vllm: /v1/chat/completions answered without a message" in told
    assert "Traceback" not in told and not adapter.socket.exists() and not adapter.report.exists()


def test_metrics_that_are_none_leave_the_configuration_to_count(start: Callable[..., Adapter]) -> None:
    adapter = start("kv-fp8", bodies={"/metrics": "<html>\xff\xfe" + "x" * 50_000}).ready()
    assert read_report(adapter.report, "vllm")["kv_dtype"] == "fp8"
