"""The check for a machine with a card: how it judges, what it does without one, and that no step stops it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.gpu import card, carry
from tests.gpu.check import STEPS, WHOLE_S, Run, asked_for
from tests.gpu.engine import command, open_to
from tests.gpu.step import ROOT, Found, Given, run, watched
from tests.gpu.steps import facts, language, memory, sessions, speech

from ondam.cli.up import laid_over
from ondam.config import load
from ondam.models.catalog import Catalog
from ondam.models.lookup import WantedModels
from ondam.models.store import Store
from ondam.planner.arithmetic import EXTRA_UNKNOWN_GIB
from ondam.planner.choose import consider
from ondam.planner.facts import Facts, Gpu
from ondam.supervisor.manifest import engine_roots, find_engines

CHECK = ROOT / "tests" / "gpu" / "check.sh"

H200 = Gpu("NVIDIA H200", 139.7, 139.0, "580.95", "9.0", 4917.0)

NAMES = ("duration_predictor", "text_encoder", "vector_estimator", "vocoder")


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(work=str(tmp_path), carry=str(tmp_path / "none"), rehearsal=False, card=0, threads=1)


def test_without_a_card_it_ends_with_two_and_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path / "home"))
    out = tmp_path / "told.json"
    done = subprocess.run(
        [CHECK, "--carry", tmp_path / "none", "--work", tmp_path, "--out", out],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.startswith("no GPU: ")
    for missing in ("wheels", "environment of supertonic", "environment of vllm", "weights for vLLM"):
        assert f"  - {missing} " in done.stdout
    told = json.loads(out.read_text("utf-8"))
    assert (told["verdict"].partition(":")[0], told["steps"]) == ("no GPU", {})


def test_pytest_finds_nothing_in_the_folder_of_the_check() -> None:
    assert [path for path in (ROOT / "tests" / "gpu").rglob("*.py") if "test" in path.stem] == []


def test_the_whole_is_under_eight_minutes_though_the_limits_of_all_steps_are_not() -> None:
    assert WHOLE_S < 8 * 60 < sum(STEPS.values())


def test_a_step_that_fails_is_a_finding_of_its_own(given: Given) -> None:
    found, _ = run("nonsense", given, 30)
    assert found.differs == [
        "the step failed: ModuleNotFoundError: No module named 'tests.gpu.steps.nonsense'"
    ]


def test_a_step_that_takes_too_long_is_ended(given: Given) -> None:
    assert watched([sys.executable, "-c", "import time; time.sleep(60)"], 0.5) is None


def test_what_was_found_is_written_after_every_step_and_decides_the_exit_code(
    given: Given, tmp_path: Path
) -> None:
    check = Run(given, tmp_path / "told.json")
    check.tell("facts", Found(), 1.0)
    check.tell("warming", Found(skipped="TensorRT is not here"), 0.1)
    assert json.loads(check.out.read_text("utf-8"))["verdict"] == "unfinished"
    assert check.end() == 0
    check.tell("speech:cuda", Found(["the processor computes Conv ×3"]), 2.0)
    assert check.end() == 1
    told = json.loads(check.out.read_text("utf-8"))
    assert told["verdict"] == "differs"
    assert [step["status"] for step in told["steps"].values()] == ["held", "skipped", "differs"]


def test_what_a_step_needs_is_made_where_it_is_asked_for_alone() -> None:
    assert [name for name in STEPS if asked_for(name, ["facts", "sessions:cuda"])] == [
        "equipment",
        "facts",
        "sessions:cuda",
    ]
    assert [name for name in STEPS if asked_for(name, ["language"])] == [
        "equipment",
        "equipment:vllm",
        "language:fp8",
        "language:eager",
    ]
    assert all(asked_for(name, []) for name in STEPS)


def test_a_step_is_not_begun_when_the_time_is_over_and_the_check_says_that_it_is_unfinished(
    given: Given, tmp_path: Path
) -> None:
    check = Run(given, tmp_path / "told.json", limit_s=0.0)
    assert check.all(["facts"]) == 3
    assert check.steps["facts"]["skipped"] == "no time left: 0 s are over"
    assert json.loads(check.out.read_text("utf-8"))["verdict"] == "unfinished"


def test_time_is_kept_for_what_judges_the_memory(given: Given, tmp_path: Path) -> None:
    check = Run(given, tmp_path / "told.json", limit_s=14.0)
    assert check.all(["warming", "memory"]) == 3
    assert check.late == ["equipment", "warming"]
    assert check.steps["memory"]["skipped"] == "no engine ran on the card"


def test_what_is_left_on_the_card_is_asked_until_it_is_nothing_or_some_seconds_are_over(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [0.0], iter([900, 700, 100, 0])
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.append(now.pop() + s))
    monkeypatch.setattr(card, "time", clock)
    monkeypatch.setattr(card, "used_mib", lambda given: next(told))
    assert (card.left_mib(given, 100), next(told)) == (100, 0)
    monkeypatch.setattr(card, "used_mib", lambda given: 900)
    assert card.left_mib(given, 100) == 900
    assert card.GONE_S < now[0] < card.GONE_S + 1
    monkeypatch.setattr(card, "used_mib", lambda given: None)
    assert card.left_mib(given, None) is None


def test_engines_run_as_the_daemon_has_them_cut_off_from_the_network(given: Given) -> None:
    told = replace(given, pythons={"vllm": "python"}, models={"vllm": "/m"})
    values = dict.fromkeys(("socket", "report", "device", "options", "cache"), "-")
    words = command("vllm", "command", told, values)
    assert (Path(words[3]).name, words[5:8]) == ("leash.py", ["loopback", "possible", "python"])
    assert open_to({"network": "none filter"}) == open_to({"network": "loopback namespace filter"}) == []
    without = ["it ran without what keeps an engine from the network"]
    assert open_to({"network": None}) == open_to({"network": "none"}) == without


def opened(**others: Any) -> dict[str, Any]:
    """One session on a card, as it should be."""
    as_it_should = {
        "refused": "",
        "instead": {"device": "cuda:0", "why": None},
        "device": "cuda:0",
        "providers": ["CUDAExecutionProvider", "CPUExecutionProvider"],
        "nodes": {"CUDAExecutionProvider": 20, "CPUExecutionProvider": 3},
        "strayed": [],
        "run_ms": 1.0,
        "finite": True,
        "off_by": 0.001,
    }
    return {**as_it_should, **others}


def all_four(used: list[int | None], **others: Any) -> dict[str, Any]:
    providers = {"cuda": ["CUDAExecutionProvider"], "tensorrt": ["TensorrtExecutionProvider"]}
    return {
        "providers_of": providers,
        "used_mib": used,
        "sessions": {name: opened() for name in NAMES} | {"vocoder": opened(**others)},
    }


def test_sessions_on_their_card_hold(given: Given) -> None:
    assert sessions.judged("cuda", all_four([10, 500]), given).status == "held"


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        (
            {"providers": ["CPUExecutionProvider"]},
            "vocoder: CPUExecutionProvider instead of CUDAExecutionProvider",
        ),
        (
            {"nodes": {"CPUExecutionProvider": 6}},
            "vocoder: no operator runs on CUDAExecutionProvider: {'CPUExecutionProvider': 6}",
        ),
        ({"strayed": ["Conv ×2"]}, "vocoder: the processor computes Conv ×2"),
        ({"finite": False}, "vocoder: what it computes is no number"),
        ({"off_by": 0.5}, "vocoder: 0.5 away from what the processor computes"),
    ],
)
def test_a_session_that_lies_differs(given: Given, lie: dict[str, Any], told: str) -> None:
    assert sessions.judged("cuda", all_four([10, 500], **lie), given).differs == [told]


def test_sessions_that_take_nothing_of_the_card_differ(given: Given) -> None:
    assert sessions.judged("cuda", all_four([500, 500]), given).differs == [
        "the card holds 500 MiB with the sessions, 500 without"
    ]


def test_without_tensorrt_a_refusal_in_words_is_no_difference_but_nothing_was_checked(given: Given) -> None:
    refused = {"refused": "no tensorrt: libnvinfer.so.10", "instead": {"device": "cuda:0", "why": "so"}}
    facts_ = {
        "providers_of": {"tensorrt": ["TensorrtExecutionProvider"]},
        "used_mib": [0, 9],
        "sessions": {name: opened(**refused) for name in NAMES},
    }
    found = sessions.judged("tensorrt", facts_, given)
    assert found.status == "skipped"
    silent = {**refused, "instead": {"device": "cpu", "why": None}}
    facts_["sessions"] = {"vocoder": opened(**silent)}
    assert sessions.judged("tensorrt", facts_, given).differs == [
        "vocoder: opened on cpu instead of tensorrt, and does not say why"
    ]


def spoken(**others: Any) -> dict[str, Any]:
    """Four texts, said by TensorRT."""
    report = {
        "providers": {name: ["TensorrtExecutionProvider", "CUDAExecutionProvider"] for name in NAMES},
        "why": {},
        "weight_loads": 1,
        "network": "none namespace filter",
    }
    facts_ = {"report": report, "ready_s": 4.0, "new_files": [], "peaks": [900] * 4, "samples": [100_000] * 4}
    return {**facts_, **others}


def test_speech_from_a_cached_start_holds() -> None:
    assert speech.judged("tensorrt", spoken(), [100_001] * 4) == []


def test_speech_that_builds_while_somebody_waits_differs() -> None:
    late = spoken(ready_s=61.0, new_files=["a/vocoder.engine"])
    assert speech.judged("tensorrt", late, None) == [
        "ready after 61.0 s: more than 20 s",
        "built while somebody waited: a/vocoder.engine",
    ]


def test_speech_that_is_silent_or_shorter_than_on_the_processor_differs() -> None:
    wrong = spoken(peaks=[900, 0, 900, 900], samples=[96_927, *[100_000] * 3])
    assert speech.judged("tensorrt", wrong, [100_000] * 4) == [
        "a text was silent: peaks [900, 0, 900, 900]",
        "'네.' has 96927 samples, 100000 on the processor",
    ]


def test_a_distribution_is_by_nearest_rank() -> None:
    assert speech.distribution([float(n) for n in range(1, 21)]) == {
        "n": 20,
        "p50": 10.0,
        "p90": 18.0,
        "p95": 19.0,
        "p99": 20.0,
        "max": 20.0,
    }


def answered(**others: Any) -> dict[str, Any]:
    report = {
        "device": "cuda:0",
        "quantization": "fp8_per_tensor",
        "cuda_graphs": True,
        "graph_mode": "full_and_piecewise",
        "weight_loads": 1,
        "network": "loopback namespace filter",
    }
    return {"report": {**report, **others}, "said": ["Seoul.", "Seoul."]}


def test_fp8_with_graphs_holds_and_eager_must_be_told() -> None:
    assert language.judged("fp8", answered()) == []
    assert (
        language.judged("eager", answered(cuda_graphs=False, graph_mode="eager", quantization="bf16")) == []
    )


def test_lost_graphs_and_lost_fp8_differ() -> None:
    eager = answered(cuda_graphs=False, graph_mode="eager", quantization="bfloat16")
    assert language.judged("fp8", eager) == [
        "FP8 was asked for, bfloat16 is told",
        "graphs: False, eager",
    ]
    assert language.judged("eager", answered()) == ["eager is not told: True, full_and_piecewise"]


def test_memory_over_the_plan_and_what_an_engine_hides_differ() -> None:
    # 1.2 GiB are 1,229 MiB; half a GiB over it is allowed.
    held = {"said_mib": 1700, "counted_mib": 1740, "left_mib": 0, "planned_gib": 1.2}
    assert memory.judged("speech:cuda", held) == []
    over = {**held, "said_mib": None, "counted_mib": 1742}
    assert memory.judged("speech:cuda", over) == ["speech:cuda: 1742 MiB where the plan counts 1229 MiB"]
    hidden = {"said_mib": 400, "counted_mib": 500, "left_mib": 300, "planned_gib": 1.2}
    assert memory.judged("speech:cuda", hidden) == [
        "speech:cuda: the engine says 400 MiB, the card 500 MiB",
        "speech:cuda: 300 MiB are not given back",
    ]


def engine_ran(planned: dict[str, Any] | None = None) -> dict[str, Any]:
    used = {"before": 100, "ready": 900, "asked": 1000, "behind": 100}
    return {"facts": {"used_mib": used, "report": {"gpu_memory_mib": 880}, "planned": planned}}


def test_memory_is_held_against_the_plan_of_each_engine_on_a_card(given: Given) -> None:
    plan = {"device": "cuda:0", "memory_gib": 1.2}
    earlier = {
        "facts": {"facts": {"planned": plan}},
        "speech:cpu": engine_ran(),
        "speech:cuda": engine_ran(),
        "language:fp8": engine_ran({"device": "cuda:0", "memory_gib": 0.3}),
    }
    found = memory.check(replace(given, earlier=earlier))
    assert found.differs == ["language:fp8: 900 MiB where the plan counts 307 MiB"]
    row = {"said_mib": 880, "counted_mib": 900, "left_mib": 0}
    assert found.facts["engines"] == {
        "speech:cuda": {**row, "planned_gib": 1.2},
        "language:fp8": {**row, "planned_gib": 0.3},
    }


@pytest.mark.parametrize("plan", [None, {}, {"device": "cpu", "memory_gib": 1.2}])
def test_an_engine_that_the_plan_puts_on_no_card_differs(given: Given, plan: dict[str, Any] | None) -> None:
    earlier = {"facts": {"facts": {"planned": plan}}, "speech:cuda": engine_ran()}
    assert memory.check(replace(given, earlier=earlier)).differs == [
        "speech:cuda: the plan puts it on no card: its memory can be held against nothing"
    ]


def test_stand_ins_are_planned_onto_a_card_with_the_size_that_they_have(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    # As the check writes them on the command line: half a GiB of weights, and a quarter of cache.
    with (tmp_path / "vllm" / "model.safetensors").open("wb") as weights:
        weights.truncate(2**29)
    wishes = {
        "llm.engine": "vllm",
        "llm.model": str(tmp_path / "vllm"),
        "engines.vllm.kv_cache_memory_bytes": 2**28,
    }
    config = load(tmp_path / "none.toml", laid_over([f"{key}={value}" for key, value in wishes.items()]))
    engines = find_engines(engine_roots(tmp_path))
    store = Store(tmp_path)
    facts_ = Facts(8, 16, "A CPU", frozenset(), 64 * 1024, "linux", "x86_64", (H200,))
    plan = consider(facts_, config, engines, WantedModels(Catalog.union(engines, []), store), ahead=True)
    (llm,) = [each for each in plan.launched if each.stage == "llm"]
    assert (llm.device, llm.memory_gib) == ("cuda:0", 0.5 + 0.25 + EXTRA_UNKNOWN_GIB)


def test_the_planners_card_is_held_against_the_drivers_own_tool() -> None:
    card = {"uuid": "GPU-1", "name": "NVIDIA L4", "total_mib": 23034, "compute_capability": "8.9"}
    seen = {"driver": "580.95.05", "cards": [card]}
    line = {
        "name": "NVIDIA L4",
        "driver_version": "580.95.05",
        "memory.total": "23034",
        "compute_cap": "8.9",
    }
    assert facts.against_smi(seen, [line]) == []
    assert facts.against_smi(seen, [{**line, "memory.total": "22000"}]) == [
        "NVIDIA L4: total is 23034 to us, 22000 to nvidia-smi"
    ]
    assert facts.against_smi(seen, [line, line]) == ["nvidia-smi shows 2 cards, NVML 1"]


def test_packing_takes_the_packages_of_the_other_machines_python(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(
        "# made\n"
        "numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"
        "numpy==2.5.5 ; python_full_version >= '3.12' \\\n    --hash=sha256:bb\n"
        "wyoming==1.10.2 \\\n    --hash=sha256:cc\n"
        "colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:dd\n",
        "utf-8",
    )
    assert list(carry.fitting(list(carry.entries(lock)), "3.12")) == [
        "numpy==2.5.5 --hash=sha256:bb",
        "wyoming==1.10.2 --hash=sha256:cc",
    ]
    assert list(carry.fitting(list(carry.entries(lock, ["numpy"])), "3.11")) == [
        "numpy==2.4.6 --hash=sha256:aa --hash=sha256:ab"
    ]


IMPORTED = """
import sys
from importlib.metadata import packages_distributions
before = set(sys.modules)
from ondam.cli import command
from ondam.cli.frame import run
sys.stdout = sys.stderr
run(command, ["plan", "--json", "--set", "tts.engine=supertonic"])
sys.stdout = sys.__stdout__
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*(of for name, found in packages_distributions().items() if name in loaded for of in found))
"""


def test_all_that_a_plan_imports_is_packed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONDAM_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    imported = {name.replace("_", "-") for name in done.stdout.split()} - {"ondam"}
    # NVIDIA's binding is loaded by a process of its own.
    assert imported | {"nvidia-ml-py"} == set(carry.FOR_THE_PLAN), done.stderr[-500:]
    lock = ROOT / "packaging" / "lock" / "runtime.lock"
    packed = {entry.partition("==")[0] for entry in carry.entries(lock, carry.FOR_THE_PLAN)}
    assert packed == set(carry.FOR_THE_PLAN)
