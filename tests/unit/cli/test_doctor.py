from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.supervisor.test_driver import engine, with_driver

from ondam.audio.pulse import ServerState
from ondam.cli.doctor import environments, sound_system
from ondam.cli.doctor_machine import disk, gpus, idle, memory, plan_fit
from ondam.cli.finding import Finding
from ondam.errors import AudioError
from ondam.messages import Phrase
from ondam.models.card import ModelCard
from ondam.models.catalog import Catalog
from ondam.models.store import Store
from ondam.places import Places, places
from ondam.planner.facts import Facts
from ondam.planner.gpus import Card, Neighbour, Sight
from ondam.planner.plan import Plan, PlannedEngine, Refusal
from ondam.supervisor.environment import environment_folder
from ondam.supervisor.manifest import engine_roots, find_engines
from ondam.supervisor.stamp import Stamp
from ondam.types import Stage

FACTS = Facts(8, 16, "A CPU", frozenset(), 32 * 1024, "linux", "x86_64")
HUB_MODEL = ModelCard(
    id="big",
    stage="llm",
    languages=["en"],
    licence="MIT",
    repository="maker/big",
    parameters_b=4.0,
    bytes_per_parameter=1.0,
)


def planned(variant: str = "cpu", device: str = "cpu", gib: float = 0.0) -> PlannedEngine:
    return PlannedEngine("toy", "llm", "big", None, None, device, 2, "en", variant=variant, memory_gib=gib)


EARS_AND_VOICE = tuple(replace(planned(), stage=stage) for stage in get_args(Stage) if stage != "llm")


def told(plan: Plan, sight: Sight) -> list[Finding]:
    """What is said of the plan, beside the ears and the voice."""
    complete = Plan((*plan.launched, *EARS_AND_VOICE))
    found = list(plan_fit(complete, {"toy": engine()}, sight))
    assert [f.ok for f in found[-2:]] == [True, True]
    return found[:-2]


def lines(findings: list[Finding]) -> list[tuple[str, bool, str, str]]:
    return [(f.check, f.ok, f.text, f.next) for f in findings]


def test_a_card_is_shown_with_who_else_uses_it() -> None:
    others = (Neighbour(7, "python3", 12 * 1024), Neighbour(8, "Xorg", 0))
    card = Card("NVIDIA L4", "580.65.06", "8.9", 24 * 1024, 10 * 1024, 12 * 1024, others, 300.0)
    found = list(gpus(Sight((card,)), FACTS))
    assert [f.text for f in found] == [
        "0: NVIDIA L4, 24.0 GiB, 10.0 free for Ondam, driver 580.65.06",
        "0: others use it too: python3 (pid 7) 12.0 GiB",
    ]
    assert all(f.ok for f in found)


def test_no_gpu_is_no_fault_and_a_broken_driver_is_one() -> None:
    (none,) = gpus(Sight(trouble=Phrase("gpu_none"), absent=True), FACTS)
    assert none.ok
    (broken,) = gpus(Sight(trouble=Phrase("gpu_driver_mismatch", detail="-")), FACTS)
    assert (broken.ok, broken.next) == (False, "Restart the machine.")


def test_an_environment_for_another_device_than_the_plans_is_told(tmp_path: Path) -> None:
    here = Places(tmp_path / "c", tmp_path / "d", tmp_path / "s", tmp_path / "r")
    engines = find_engines(engine_roots(here.user_engines))
    root = environment_folder("llama_cpp", here)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (root / "lib" / version / "site-packages" / "ondam_engines" / "llama_cpp").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").touch()
    Stamp.wanted(engines["llama_cpp"], "cpu").write(root)
    plan = Plan((replace(planned("cuda", "cuda:0"), engine="llama_cpp"),))
    (found,) = environments(plan, engines, here)
    assert (found.ok, found.text) == (
        False,
        'The environment of llama_cpp was built for "cpu"; the plan wants "cuda".',
    )
    assert found.next == "ondam engines build llama_cpp --variant cuda"


def test_a_driver_that_cannot_run_the_plan_is_told_with_what_to_do() -> None:
    plan = Plan((planned("cu13", "cuda:0", 4.2),))
    fits, refused = told(plan, with_driver("570.1"))
    assert (fits.ok, fits.text) == (True, "thinking: toy with big on cuda:0, 4.2 GiB")
    assert (refused.check, refused.ok) == ("driver", False)
    assert "580 or newer" in refused.text and "--variant cu12" in refused.next
    assert [f.check for f in told(plan, with_driver("580.1"))] == ["plan"]


def test_what_the_user_asked_for_and_cannot_have_is_told() -> None:
    reason = Phrase("doctor_memory_short", needed="9.0", free="8.0")
    asked = Refusal("llm", "toy", "big", "fp8", "cuda:0", reason, fixed=True)
    larger = Refusal("llm", "toy", "larger", "fp8", "cuda:0", reason)
    lacking, *refused = plan_fit(Plan(EARS_AND_VOICE, refused=(asked, larger)), {"toy": engine()}, Sight())
    assert lines([lacking]) == [("plan", False, "thinking: nothing that fits", "ondam plan")]
    assert lines(refused[2:]) == [
        (
            "plan",
            False,
            "toy with big cannot be used: 9.0 GiB are needed, only 8.0 are free",
            "ondam plan",
        )
    ]


async def test_a_card_that_nothing_uses_is_told_with_what_to_fetch_for_it(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card("NVIDIA H200", "580.65.06", "9.0", 140 * 1024, 140 * 1024, 0, (), 4800.0)
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight((card,)))
    told = {check["text"]: check["ok"] for check in (await ondam("doctor", "--json")).json["checks"]}
    assert told["thinking: llama_server with smollm2-135m-instruct on cpu, 0.5 GiB"]
    # 35 × 10⁹ bytes.
    assert told[
        "thinking: cuda:0 could run vllm with qwen3.5-35b-a3b-fp8; to fetch it first (35.0 GB):"
        " ondam models add qwen3.5-35b-a3b-fp8"
    ]


def test_a_card_that_is_used_and_a_model_that_is_here_are_nothing_to_fetch() -> None:
    now, later = planned(), planned("cu13", "cuda:0", 4.2)
    catalog = Catalog({"big": HUB_MODEL})
    small = replace(now, model="small")
    assert len(list(idle(Plan((small,)), Plan((later,)), catalog))) == 1
    assert not list(idle(Plan((now,)), Plan((later,)), catalog))
    assert not list(idle(Plan((replace(small, device="cuda:0"),)), Plan((later,)), catalog))
    assert not list(idle(Plan((small,)), Plan((now,)), catalog))


@pytest.mark.parametrize(("available", "ok"), [(4.3, True), (4.1, False)])
def test_main_memory_is_counted_for_what_runs_there(available: float, ok: bool) -> None:
    # Of what is on a card, its program.
    plan = Plan((planned(gib=2.2), replace(planned("cu13", "cuda:0", 20.0), program_gib=2.0)))
    (found,) = memory(plan, FACTS, available)
    assert (found.ok, found.text.split()[0]) == (ok, "4.2")


def test_with_one_memory_for_both_everything_is_counted() -> None:
    shared = Facts(8, 8, "Apple M2", frozenset(), 16 * 1024, "darwin", "aarch64", unified_memory=True)
    (found,) = memory(Plan((planned("cpu", "metal", 4.2),)), shared, 4.0)
    assert not found.ok and found.next.startswith("Close other programs")


@pytest.mark.parametrize(("free_gib", "ok"), [(4.0, False), (40.0, True)])
def test_the_disk_must_hold_what_has_to_be_fetched(
    free_gib: float, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=int(free_gib * 2**30)))
    monkeypatch.setattr("ondam.models.catalog.daemon_models", list)
    (found,) = disk(Plan((planned(),)), Catalog({"big": HUB_MODEL}), Store(tmp_path / "m"), places())
    assert (found.ok, "models to be fetched: 3.7 GiB" in found.text) == (ok, True)


async def test_a_look_that_fails_is_told_and_hides_nothing_else(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Sight:
        raise RuntimeError("no such thing")

    monkeypatch.setattr("ondam.planner.gpus.look", broken)
    done = await ondam("doctor", "--json")
    checks = done.json["checks"]
    sick = next(check for check in checks if check["check"] == "machine")
    assert (sick["ok"], sick["text"]) == (False, "Looking at it failed: RuntimeError: no such thing")
    assert {"sockets", "daemon"} <= {check["check"] for check in checks}
    assert (done.code, done.json["facts"], "Traceback" in done.err) == (1, None, False)


async def test_the_facts_come_along(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card("NVIDIA L4", "580.65.06", "8.9", 24 * 1024, 10 * 1024, 12 * 1024, (), 300.0)
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight((card,)))
    facts = (await ondam("doctor", "--json")).json["facts"]
    assert [(gpu["name"], gpu["free_gib"]) for gpu in facts["gpus"]] == [("NVIDIA L4", 10.0)]
    assert Facts.from_json(facts, "doctor").gpus[0].neighbours_gib == 12.0


@pytest.mark.parametrize("language", ["ko", "en"])
async def test_it_is_shown_to_people_in_their_language(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", language)
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight(trouble=Phrase("gpu_none"), absent=True))
    out = (await ondam("doctor")).out
    shown = "✓  컴퓨터" if language == "ko" else "✓  Machine"
    assert shown in out and "{" not in out


def test_a_sound_server_that_portaudio_cannot_reach_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("ondam.audio.pulse.pulse_watch", lambda: SimpleNamespace(state=ServerState(True)))
    monkeypatch.setattr("ondam.audio.portaudio.version", lambda: "V19")
    monkeypatch.setattr("ondam.audio.portaudio.reaches_server", lambda: False)
    assert lines(list(sound_system())) == [
        ("portaudio", True, "V19", ""),
        (
            "soundserver",
            False,
            "It runs, but PortAudio has no way to it.",
            "sudo apt install libasound2-plugins",
        ),
    ]


def test_a_missing_portaudio_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def missing() -> str:
        raise AudioError("portaudio_missing", reason="no library")

    monkeypatch.setattr("ondam.audio.pulse.pulse_watch", lambda: SimpleNamespace(state=ServerState()))
    monkeypatch.setattr("ondam.audio.portaudio.version", missing)
    (found,) = sound_system()
    assert (found.check, found.next) == ("portaudio", "sudo apt install libportaudio2 libasound2-plugins")
