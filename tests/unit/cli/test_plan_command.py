"""``ondam plan``: for a person, for a program, for a machine that is not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Ondam

from ondam.messages import Phrase
from ondam.planner.gpus import Card, Sight

CARD = {
    "name": "NVIDIA GeForce RTX 3060",
    "vram_gib": 12,
    "free_gib": 12,
    "driver": "580.65.06",
    "compute_capability": "8.6",
}

MACHINE: dict[str, Any] = {
    "os": "linux",
    "arch": "x86_64",
    "cpu": {"cores": 8, "flags": ["avx2"]},
    "ram_gib": 32,
    "gpus": [CARD],
}


@pytest.fixture
def machine(tmp_path: Path) -> str:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(MACHINE))
    return str(path)


async def test_this_machine_is_planned_for_programs(ondam: Ondam) -> None:
    done = await ondam("plan", "--set", "plan.device=cpu", "--set", "language=en", "--json")
    told = done.json
    assert done.code == 0
    assert [told[stage]["model"] for stage in ("stt", "llm", "tts")] == [
        *("whisper-base", "smollm2-135m-instruct", "joe")
    ]
    assert told["now"] == {stage: told[stage]["model"] for stage in ("stt", "llm", "tts")}
    assert told["facts"]["cpu"]["cores"] >= 1


async def test_a_machine_that_is_not_here_gets_what_fits_it(ondam: Ondam, machine: str) -> None:
    told = (await ondam("plan", "--for", machine, "--set", "language=ko", "--json")).json
    llm = told["llm"]
    assert {*llm} >= {"engine", "model", "quantization", "device", "memory_gib", "reasons"}
    assert (llm["model"], llm["quantization"], llm["device"]) == ("qwen3-8b-q4_k_m", "q4_k_m", "cuda:0")
    assert llm["sum"]["total_gib"] == llm["memory_gib"] == 5.95
    assert len(llm["reasons_in"]["ko"]) == len(llm["reasons_in"]["en"]) == len(llm["reasons"])
    larger = next(no for no in told["refused"] if no["model"] == "qwen3-14b-q4_k_m")
    assert larger["code"] == "plan_does_not_fit"
    assert "GiB too little" in larger["reasons"][0] and "GiB가 모자람" in larger["reasons_in"]["ko"][0]
    assert told["now"] is None


async def test_the_facts_of_this_machine_can_be_planned_for_elsewhere(
    ondam: Ondam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card("NVIDIA L4", "580.65.06", "8.9", 24 * 1024, 22 * 1024, 1024, (), 300.0)
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight((card,)))
    told = await ondam("plan", "--facts")
    assert told.json["gpus"] == [
        {
            "name": "NVIDIA L4",
            "vram_gib": 24.0,
            "free_gib": 22.0,
            "driver": "580.65.06",
            "compute_capability": "8.9",
            "bandwidth_gb_s": 300.0,
            "neighbours_gib": 1.0,
        }
    ]
    (tmp_path / "here.json").write_text(told.out)
    again = await ondam("plan", "--for", str(tmp_path / "here.json"), "--facts", "--json")
    assert again.json == told.json
    assert (await ondam("plan", "--for", str(tmp_path / "here.json"), "--json")).json["facts"] == told.json


async def test_a_gpu_that_cannot_be_asked_is_told_beside_the_facts(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Sight(trouble=Phrase("gpu_driver_silent", seconds="10"))
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: broken)
    done = await ondam("plan", "--facts")
    assert (done.code, done.json["gpus"]) == (0, []) and "seems to hang" in done.err


async def test_a_person_reads_sums_reasons_and_what_to_fetch(ondam: Ondam, machine: str) -> None:
    done = await ondam("plan", "--for", machine, "--set", "language=ko")
    assert done.out.splitlines()[0] == (
        "cuda:0 NVIDIA GeForce RTX 3060: card 12.00 − kept free 0.30 = 11.70 GiB for engines"
    )
    assert "weights 4.58 + key/value cache 0.57 + graphs and workspace 0.80 = 5.95 GiB" in done.out
    assert "to be fetched first (4.9 GB): ondam models add qwen3-8b-q4_k_m" in done.out
    assert "Not chosen:" in done.out


async def test_in_korean_too(ondam: Ondam, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    told = (await ondam("plan", "--for", machine)).out
    assert (
        "선택하지 않은 것:" in told and "먼저 내려받아야 함(4.9 GB): ondam models add qwen3-8b-q4_k_m" in told
    )


async def test_what_was_asked_for_and_does_not_fit_leaves_its_stage_empty(ondam: Ondam, machine: str) -> None:
    done = await ondam("plan", "--for", machine, "--set", "llm.model=qwen3.5-27b-q4_k_m", "--json")
    assert (done.code, done.json["llm"]) == (3, None)
    no = next(no for no in done.json["refused"] if no["model"] == "qwen3.5-27b-q4_k_m")
    assert no["fixed"] and no["memory_gib"] == 16.49
    shown = await ondam("plan", "--for", machine, "--set", "llm.model=qwen3.5-27b-q4_k_m")
    assert "llm: what the configuration asks for cannot run here." in shown.err


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{", "is not valid JSON"),
        ("[]", "describes no machine: it should be a JSON object"),
        ("[" * 100_000, "it holds a number or a nesting that is too long"),
        ('{"ram_gib": ' + "9" * 5000 + "}", "it holds a number or a nesting that is too long"),
        ("", "is not valid JSON"),
        (json.dumps({**MACHINE, "gpu": []}), 'gpu: unknown key; did you mean "gpus"?'),
    ],
)
async def test_facts_that_are_none_are_refused(ondam: Ondam, tmp_path: Path, written: str, told: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(written)
    done = await ondam("plan", "--for", str(path))
    assert (done.code, done.out) == (3, "")
    assert told in done.err


async def test_a_card_that_is_not_used_is_told_with_the_reason(ondam: Ondam, tmp_path: Path) -> None:
    path = tmp_path / "amd.json"
    path.write_text(json.dumps({**MACHINE, "gpus": [{"name": "AMD card", "vram_gib": 24}]}))
    why = "AMD card: not used; neither NVIDIA's driver nor a Vulkan driver is known for it"
    assert why in (await ondam("plan", "--for", str(path))).out
    assert (await ondam("plan", "--for", str(path), "--json")).json["unused"] == [why]
    path.write_text(json.dumps(MACHINE))
    left_alone = await ondam("plan", "--for", str(path), "--set", "plan.device=cpu")
    assert 'RTX 3060: not used; plan.device is "cpu"' in left_alone.out


async def test_a_file_that_is_not_there_is_named(ondam: Ondam, tmp_path: Path) -> None:
    done = await ondam("plan", "--for", str(tmp_path / "none.json"))
    assert done.code == 3 and "none.json does not exist" in done.err
