"""Machines that are not here, each with what it gets and the sum behind it, worked out by hand.

Needs, in GiB: weights (parameters × bytes) + keys and values of 4096 tokens + state + workspace; in vLLM of
2 × 4096 tokens, llama.cpp holds one conversation.

    whisper-large-v3-turbo    0.809 × 2   = 1.51              + 1.00          =  2.51
    qwen3-asr-1.7b             2.35 × 2   = 4.38 + 0.11       + 1.20          =  5.69
    supertonic-3                0.1 × 4   = 0.38              + 1.20          =  1.58
    qwen3-4b-q4_k_m            4.02 × 0.6 = 2.25 + 0.57       + 0.80          =  3.62
    qwen3-8b-q4_k_m            8.19 × 0.6 = 4.58 + 0.57       + 0.80          =  5.95
    qwen3-14b-q4_k_m          14.77 × 0.6 = 8.26 + 0.63       + 0.80          =  9.69
    qwen3.5-27b-q4_k_m           27 × 0.6 = 15.09 + 0.25 + 0.15 + 1.00        = 16.49
    qwen3.5-35b-a3b-q4_k_m       35 × 0.6 = 19.56 + 0.08 + 0.06 + 0.80        = 20.50
    qwen3.5-35b-a3b-fp8          35 × 1   = 32.60 + 0.08 + 0.49 + 4.00        = 37.17

The last has keys and values in FP8: 20,480 / 2 bytes × 8192 tokens = 0.08; its state is 2 × 248 MiB = 0.49.
Where the card has it, its cache is filled up to 1 GiB: 0.43 more, 37.60.

Of each card 0.3 stays free.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.planner.machines import ENGINES, Shelf, config, gpu, machine, plan

from ondam.errors import ConfigError
from ondam.models.card import ModelCard
from ondam.planner.choose import choose, consider, missing
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan, PlannedEngine, Refusal
from ondam.supervisor.manifest import EngineFolder
from ondam.types import Stage

TURBO = ("faster_whisper", "whisper-large-v3-turbo", "cuda:0", 2.51)
ASR = ("qwen_asr", "qwen3-asr-1.7b", "cuda:0", 5.69)
BASE = ("faster_whisper", "whisper-base", "cpu", 0.32)
SMOLLM = ("llama_server", "smollm2-135m-instruct", "cpu", 0.51)
VOICE = ("supertonic", "supertonic-3", "cuda:0", 1.58)
QUIET_VOICE = ("supertonic", "supertonic-3", "cpu", 0.68)
ESPEAK = ("espeak", "espeak", "cpu", 0.04)
Q4 = {
    "4b": ("llama_cpp", "qwen3-4b-q4_k_m", "cuda:0", 3.62),
    "8b": ("llama_cpp", "qwen3-8b-q4_k_m", "cuda:0", 5.95),
    "14b": ("llama_cpp", "qwen3-14b-q4_k_m", "cuda:0", 9.69),
    "27b": ("llama_cpp", "qwen3.5-27b-q4_k_m", "cuda:0", 16.49),
    "35b": ("llama_cpp", "qwen3.5-35b-a3b-q4_k_m", "cuda:0", 20.50),
}
FP8 = ("vllm", "qwen3.5-35b-a3b-fp8", "cuda:0", 37.60)

Row = tuple[str, str, str, float]

TURING: dict[str, Any] = {"capability": "7.5", "driver": "550.120"}

MACHINES: dict[str, tuple[Facts, Row, Row, Row]] = {
    "a laptop without a GPU": (machine(ram=16, on_battery=True), BASE, SMOLLM, ESPEAK),
    "an ARM board": (machine(ram=8, arch="aarch64"), BASE, SMOLLM, ESPEAK),
    "a tiny board of 4 GB": (machine(ram=4, arch="aarch64"), BASE, SMOLLM, ESPEAK),
    # 3.2: the smallest language model takes 3.62.
    "3.5 GB": (machine(gpu(3.5)), BASE, SMOLLM, VOICE),
    # 3.7: 3.62 alone.
    "4 GB": (machine(gpu(4)), BASE, Q4["4b"], QUIET_VOICE),
    # 5.7: 3.62 alone, leaves 2.08; with the recognizer 6.13.
    "6 GB": (machine(gpu(6)), BASE, Q4["4b"], VOICE),
    # 7.7: 2.51 + 3.62 = 6.13, leaves 1.57, and the voice takes 1.58; with 8B 8.46.
    "8 GB": (machine(gpu(8)), TURBO, Q4["4b"], QUIET_VOICE),
    # 11.7: 2.51 + 5.95 + 1.58 = 10.04; with 14B 12.2.
    "12 GB": (machine(gpu(12)), TURBO, Q4["8b"], VOICE),
    # 15.7: 2.51 + 9.69 + 1.58 = 13.78; with 27B 19.0.
    "16 GB": (machine(gpu(16)), TURBO, Q4["14b"], VOICE),
    # 19.7: 2.51 + 16.49 = 19.0, leaves 0.7.
    "20 GB": (machine(gpu(20)), TURBO, Q4["27b"], QUIET_VOICE),
    # 23.7: 2.51 + 20.50 = 23.01, leaves 0.69.
    "24 GB": (machine(gpu(24)), TURBO, Q4["35b"], QUIET_VOICE),
    # 31.7: 5.69 + 20.50 + 1.58 = 27.77; with FP8 42.86.
    "32 GB": (machine(gpu(32)), ASR, Q4["35b"], VOICE),
    # 39.7, and no FP8 on Ampere.
    "40 GB of Ampere": (machine(gpu(40, capability="8.0")), ASR, Q4["35b"], VOICE),
    # 47.7: 5.69 + 37.60 + 1.58 = 44.87.
    "48 GB": (machine(gpu(48)), ASR, FP8, VOICE),
    "80 GB alone": (machine(gpu(80, capability="9.0")), ASR, FP8, VOICE),
    # 80 − 35 − 0.3 = 44.7: 5.69 + 37.60 = 43.29 leaves 1.41, and the voice takes 1.58.
    "80 GB with 35 GB of neighbours": (
        machine(gpu(80, neighbours_gib=35, free_gib=45)),
        ASR,
        FP8,
        QUIET_VOICE,
    ),
    # 80 − 52 − 0.3 = 27.7: not 5.69 + 20.50 + 1.58 = 27.77.
    "80 GB with 52 GB of neighbours": (machine(gpu(80, free_gib=28)), ASR, Q4["35b"], QUIET_VOICE),
    "an H200": (machine(gpu(140.4, capability="9.0", bandwidth_gb_s=4800)), ASR, FP8, VOICE),
    # 570: vLLM, Qwen3-ASR and the voice's CUDA need 580. Of the recognizers there is the one with a set for
    # CUDA 12.
    "80 GB with driver 570": (machine(gpu(80, "570.124")), TURBO, Q4["35b"], QUIET_VOICE),
    "80 GB with driver 550": (machine(gpu(80, "550.54")), TURBO, Q4["35b"], QUIET_VOICE),
    "80 GB with driver 470": (machine(gpu(80, "470.1")), BASE, SMOLLM, QUIET_VOICE),
    # 7.7 + 7.7: the recognizer on one, 14B over both: 9.69 + 0.5 of 12.89; 27B takes 16.99.
    "2 × 8 GB of Turing": (
        machine(gpu(8, **TURING), gpu(8, **TURING)),
        TURBO,
        ("llama_cpp", "qwen3-14b-q4_k_m", "cuda", 10.19),
        QUIET_VOICE,
    ),
    # 24 × 2/3 − 0.3 = 15.7: 14B takes 9.69, but at 100 GB/s gives 7.9 tokens a second; 8B gives 14.2.
    "a Mac of 24 GB": (
        machine(ram=24, os="darwin", arch="arm64", unified_memory=True, memory_gb_s=100),
        BASE,
        ("llama_cpp", "qwen3-8b-q4_k_m", "metal", 5.95),
        QUIET_VOICE,
    ),
    # 36 × 2/3 − 0.3 = 23.7: the mixture of experts reads 1.8 GB a token.
    "a Mac of 36 GB": (
        machine(ram=36, os="darwin", arch="arm64", unified_memory=True, memory_gb_s=150),
        BASE,
        ("llama_cpp", "qwen3.5-35b-a3b-q4_k_m", "metal", 20.50),
        QUIET_VOICE,
    ),
}


def row(engine: PlannedEngine) -> Row:
    return engine.engine, engine.model, engine.device, engine.memory_gib


def first(made: Plan, stage: Stage) -> PlannedEngine:
    return next(engine for engine in made.launched if engine.stage == stage and not engine.spare)


def refused(made: Plan, model: str) -> Refusal:
    return next(no for no in made.refused if no.model == model)


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_gets_what_its_sum_allows(name: str) -> None:
    facts, stt, llm, tts = MACHINES[name]
    made = plan(facts)
    assert [row(first(made, stage)) for stage in ("stt", "llm", "tts")] == [stt, llm, tts]


@pytest.mark.parametrize("name", MACHINES)
def test_every_choice_has_its_reasons_and_its_sum_in_both_languages(name: str) -> None:
    for engine in plan(MACHINES[name][0]).launched:
        assert engine.need is not None
        assert engine.need.gib == engine.memory_gib
        assert engine.reasons[0].code == engine.reason
        for language in ("en", "ko"):
            told = " ".join(reason.in_language(language) for reason in engine.reasons)
            assert f"{engine.need.gib:.2f} GiB" in told and "{" not in told


def test_what_misses_by_a_tenth_is_refused_with_the_sum() -> None:
    named: dict[str, Any] = {"stt": {"engine": "qwen_asr"}, "llm": {"model": "qwen3.5-35b-a3b-fp8"}}
    # 5.69 + 37.17 + 0.3 = 43.16
    enough = plan(machine(gpu(43.16)), **named)
    assert [row(first(enough, "stt")), row(first(enough, "llm"))] == [ASR, (*FP8[:3], 37.17)]
    short = plan(machine(gpu(43.06)), **named)
    assert missing(short) == ["llm"]
    assert str(refused(short, "qwen3.5-35b-a3b-fp8").reason) == (
        "needs weights 32.60 + key/value cache 0.08 + state of each sequence 0.49 + graphs and workspace 4.00"
        " = 37.17 GiB; there is card 43.06 − kept free 0.30 − planned before 5.69 = 37.07 GiB:"
        " 0.10 GiB too little"
    )


def test_nothing_starts_on_a_plan_that_lacks_a_stage() -> None:
    asked = config(stt={"engine": "qwen_asr"}, llm={"model": "qwen3.5-35b-a3b-fp8"})
    with pytest.raises(ConfigError) as raised:
        choose(machine(gpu(43.06)), asked, ENGINES, Shelf())
    told = raised.value.message("en")
    assert told.text.startswith("This machine cannot run what the configuration asks for:")
    assert "llm: vllm qwen3.5-35b-a3b-fp8: needs" in told.text and "0.10 GiB too little" in told.text
    assert "0.10 GiB가 모자람" in raised.value.message("ko").text


@pytest.mark.parametrize(
    ("driver", "engine", "needed"),
    [
        ("570.124", "vllm", 580),
        ("550.54", "vllm", 580),
        ("570.124", "qwen_asr", 580),
        ("470.1", "llama_cpp", 525),
    ],
)
def test_an_old_driver_is_refused_with_the_one_that_is_needed(driver: str, engine: str, needed: int) -> None:
    nos = [no for no in plan(machine(gpu(80, driver))).refused if no.engine == engine]
    assert {str(no.reason) for no in nos} == {
        f"{engine} needs NVIDIA's driver {needed} or newer; {driver} is installed"
    }


def test_the_set_of_packages_follows_the_driver() -> None:
    made = plan(machine(gpu(80)))
    assert [first(made, stage).variant for stage in ("stt", "llm", "tts")] == ["cu13"] * 3
    made = plan(machine(gpu(80, "570.124")))
    assert [first(made, stage).variant for stage in ("stt", "llm", "tts")] == ["cu12", "cuda", "cpu"]


def test_an_older_set_that_is_taken_is_told() -> None:
    # No engine that comes with Ondam has two sets for CUDA: this one is made up.
    folder = ENGINES["qwen_asr"]
    locks = {**folder.manifest.environment.locks, "cu128": "requirements.cu128.lock"}
    environment = folder.manifest.environment.model_copy(update={"locks": locks})
    manifest = folder.manifest.model_copy(update={"environment": environment})
    engines = {**ENGINES, "qwen_asr": EngineFolder(folder.path, manifest)}
    stt = first(consider(machine(gpu(80, "570.124")), config(), engines, Shelf(), ahead=True), "stt")
    assert (row(stt), stt.variant) == (ASR, "cu128")
    assert "cu128 is used" in " ".join(map(str, stt.reasons))


def test_a_card_without_fp8_is_told() -> None:
    made = plan(machine(gpu(80, capability="8.0")))
    assert str(refused(made, "qwen3.5-35b-a3b-fp8").reason) == (
        "80 GB card (compute capability 8.0) does not compute in FP8; that takes 8.9 or newer"
    )


def test_the_cache_is_given_in_bytes_and_never_as_a_share_of_the_card() -> None:
    # 0.08 + 0.49 + 0.43 GiB
    assert first(plan(machine(gpu(80))), "llm").options["kv_cache_memory_bytes"] == 2**30
    # 3 GiB, whatever the model's arithmetic says: 32.60 + 3 + 4.
    mine = first(plan(machine(gpu(80)), engines={"vllm": {"kv_cache_memory_bytes": 3 * 2**30}}), "llm")
    assert (mine.options["kv_cache_memory_bytes"], mine.memory_gib) == (3 * 2**30, 39.6)


@pytest.mark.parametrize(
    ("vram", "more"),
    # 5.69 + 37.17 + 0.3 = 43.16; what is over goes into the cache, up to 1 − 0.08 − 0.49.
    [(43.16, 0.0), (43.36, 0.2), (43.59, 0.43), (60, 0.43)],
)
def test_a_cache_is_filled_up_to_a_gibibyte_as_far_as_the_card_has_it(vram: float, more: float) -> None:
    llm = first(plan(machine(gpu(vram)), stt={"engine": "qwen_asr"}, llm={"engine": "vllm"}), "llm")
    assert (llm.model, llm.memory_gib) == ("qwen3.5-35b-a3b-fp8", round(37.17 + more, 2))
    assert llm.need is not None and llm.need.of("floor") == more
    assert llm.options["kv_cache_memory_bytes"] == round((0.57 + more) * 2**30)
    if more:
        assert f"state of each sequence 0.49 + more cache {more:.2f} + graphs" in str(llm.need.told)
        assert f"캐시 여유분 {more:.2f}" in llm.need.told.in_language("ko")


BF16 = {
    "id": "own-bf16", "stage": "llm", "languages": ["ko"], "licence": "MIT", "repository": "own/model",
    "served_by": ["vllm"], "parameters_b": 4.0, "bytes_per_parameter": 2.0, "kv_bytes_per_token": 147456,
    "needs_gib_extra": 2.0,
}  # fmt: skip
"""8 GB of weights = 7.46 GiB; keys and values of 144 KiB × 8192 = 1.125 GiB, in FP8 0.5625."""


def engines_with_bf16() -> dict[str, EngineFolder]:
    vllm = ENGINES["vllm"].manifest
    cards = [ModelCard.model_validate(BF16)]
    return {**ENGINES, "vllm": EngineFolder(Path("/x"), vllm.model_copy(update={"models": cards}))}


@pytest.mark.parametrize(
    ("cards", "own", "dtype", "kv", "reason"),
    [
        ([gpu(24)], {}, "fp8", 0.57, "plan_kv_fp8"),
        ([gpu(24, capability="12.0")], {}, "fp8", 0.57, "plan_kv_fp8"),
        ([gpu(24, capability="8.6")], {}, "auto", 1.13, "plan_kv_16"),
        ([{**gpu(24), "compute_capability": None}], {}, "auto", 1.13, "plan_kv_16"),
        # On either card the same sum, so the older one says.
        ([gpu(24), gpu(24, capability="8.6")], {}, "auto", 1.13, "plan_kv_16"),
        ([gpu(24)], {"kv_cache_dtype": "auto"}, "auto", 1.13, "plan_kv_own"),
        ([gpu(24)], {"kv_cache_dtype": "fp8_e5m2"}, "fp8_e5m2", 0.57, "plan_kv_own"),
        ([gpu(24, capability="8.0")], {"kv_cache_dtype": "fp8"}, "fp8", 0.57, "plan_kv_own"),
    ],
)
def test_keys_and_values_are_in_fp8_where_the_card_has_it_and_the_user_says_nothing(
    cards: list[dict[str, Any]], own: dict[str, str], dtype: str, kv: float, reason: str
) -> None:
    asked = config(llm={"engine": "vllm"}, engines={"vllm": own})
    shelf = Shelf(ModelCard.model_validate(BF16))
    llm = first(consider(machine(*cards), asked, engines_with_bf16(), shelf, ahead=True), "llm")
    assert llm.need is not None
    assert (llm.options["kv_cache_dtype"], llm.need.of("kv")) == (dtype, kv)
    # 7.46 + 0.57 + 0.43 + 2 or 7.46 + 1.13 + 2
    assert llm.memory_gib == (10.46 if kv < 1 else 10.59)
    told = next(each for each in llm.reasons if each.code.startswith("plan_kv"))
    assert told.code == reason
    assert "key/value cache" in told.in_language("en") and "키/값 캐시" in told.in_language("ko")


def test_a_longer_conversation_takes_more() -> None:
    # 147,456 bytes × 16,384 = 2.25 GiB instead of 0.5625: 2.25 + 2.25 + 0.8 = 5.3 does not fit beside 2.51.
    longer = {"llama_cpp": {"context_length": 16384}}
    made = plan(machine(gpu(8)), llm={"engine": "llama_cpp"}, engines=longer)
    assert (first(made, "llm").model, first(made, "llm").memory_gib) == ("qwen3-4b-q4_k_m", 5.3)
    assert row(first(made, "stt")) == BASE


def test_layers_are_spilled_only_when_asked_for_and_said_by_bandwidth() -> None:
    facts = machine(gpu(12, bandwidth_gb_s=450), ram=64, memory_gb_s=60)
    assert first(plan(facts), "llm").model == "qwen3-8b-q4_k_m"
    llm = first(plan(facts, llm={"model": "qwen3.5-35b-a3b-q4_k_m"}), "llm")
    assert (llm.engine, llm.device, llm.memory_gib) == ("llama_cpp", "cuda:0", 20.5)
    # 11.7 beside the recognizer's 5.69 are 6.01: 10 of 40 layers, 4.89 + 0.02 + 0.02 + 0.80. Of 1.8 GB a
    # token 30/40 are read at 60 GB/s, 10/40 at 450: 0.7 / (1.35 / 60 + 0.45 / 450) = 29.8.
    assert llm.need is not None and llm.need.gib == 5.73
    assert llm.options["gpu_layers"] == 10
    told = next(reason for reason in llm.reasons if reason.code == "plan_spilled")
    assert told.in_language("en") == (
        "14.77 GiB of its layers lie in main memory, where the processor computes them:"
        " about 30 tokens a second at 60 GB/s"
    )
    assert llm.expected is not None and "30 tokens a second at 60 + 450 GB/s" in str(llm.expected.source)


def test_the_users_word_on_the_memorys_bandwidth_counts() -> None:
    facts = machine(gpu(12, bandwidth_gb_s=450))
    named: dict[str, Any] = {"llm": {"model": "qwen3.5-35b-a3b-q4_k_m"}}
    assert "plan_spilled_unknown" in {reason.code for reason in first(plan(facts, **named), "llm").reasons}
    told = first(plan(facts, **named, plan={"memory_gb_s": 60.0}), "llm").reasons
    assert "about 30 tokens a second" in " ".join(map(str, told))


def test_layers_are_not_spilled_where_nobody_knows_how_quick_that_is() -> None:
    facts = machine(gpu(12, bandwidth_gb_s=450), ram=64)
    assert first(plan(facts, plan={"prefer": "quality"}), "llm").model == "qwen3-8b-q4_k_m"
    quick = machine(gpu(12, bandwidth_gb_s=450), ram=64, memory_gb_s=60)
    assert first(plan(quick, plan={"prefer": "quality"}), "llm").model == "qwen3.5-35b-a3b-q4_k_m"


def test_quick_before_large_where_that_is_preferred() -> None:
    # 288 GB/s × 0.7 over 8.86 GB is 22.7 tokens a second for 14B, 41 for 8B, 83 for 4B.
    facts = machine(gpu(16, bandwidth_gb_s=288))
    assert first(plan(facts), "llm").model == "qwen3-14b-q4_k_m"
    assert first(plan(facts, plan={"prefer": "speed"}), "llm").model == "qwen3-4b-q4_k_m"


def test_licences_outside_of_the_limits_are_refused() -> None:
    made = plan(machine(gpu(80)), plan={"licences": ["MIT", "Apache-*", "GPL-*"]})
    assert first(made, "tts").engine == "espeak"
    assert str(refused(made, "supertonic-3").reason) == (
        "its licence, LicenseRef-OpenRAIL-M, is not among those in plan.licences (MIT, Apache-*, GPL-*)"
    )


def test_licences_that_leave_nothing_leave_every_stage_empty_each_engine_with_its_reason() -> None:
    made = plan(machine(gpu(24)), plan={"licences": ["None-Such"]})
    assert (missing(made), made.launched) == (["stt", "llm", "tts"], ())
    assert {no.reason.code for no in made.refused} == {"plan_licence"}
    assert {no.engine for no in made.refused} >= {"faster_whisper", "vllm", "llama_server", "espeak"}


def test_a_licence_is_meant_in_whatever_case_it_is_written() -> None:
    made = plan(machine(gpu(24)), plan={"licences": ["mit", "APACHE-*"]})
    assert row(first(made, "llm")) == Q4["35b"]


GATED = {
    "id": "gated-4b", "stage": "llm", "languages": ["ko"], "licence": "MIT", "repository": "own/gated",
    "served_by": ["llama_cpp"], "parameters_b": 4.0, "bytes_per_parameter": 0.5, "gated": True,
    "entry": "m.gguf",
}  # fmt: skip


@pytest.mark.parametrize("facts", [machine(gpu(24)), machine()], ids=["a card", "no card"])
def test_a_model_that_needs_acceptance_is_planned_with_the_way_to_it_or_refused(facts: Facts) -> None:
    card = ModelCard.model_validate(GATED)
    folder = ENGINES["llama_cpp"]
    manifest = folder.manifest.model_copy(update={"models": [card]})
    engines = {**ENGINES, "llama_cpp": EngineFolder(folder.path, manifest)}
    shelf = Shelf(card, here=set())
    asked: dict[str, Any] = {"llm": {"model": "gated-4b"}}
    llm = first(consider(facts, config(**asked), engines, shelf, ahead=True), "llm")
    assert "accepted at the hub (own/gated); then (2.0 GB): ondam models add gated-4b" in " ".join(
        map(str, llm.reasons)
    )
    asked["plan"] = {"gated": False}
    made = consider(facts, config(**asked), engines, shelf, ahead=True)
    assert missing(made) == ["llm"]
    assert refused(made, "gated-4b").reason.code == "plan_gated"
    assert len([no for no in made.refused if no.model == "gated-4b"]) == 1


def test_the_disk_counts_for_a_model_on_the_processor_too() -> None:
    made = plan(machine(disk_free_gib=1), shelf=Shelf(here=set()), llm={"model": "qwen3-8b-q4_k_m"})
    assert missing(made) == ["llm"]
    # 8.19 × 0.6 × 10⁹ bytes
    assert "4.6 GiB do not fit on the disk, where 1.0 GiB are free" in str(
        refused(made, "qwen3-8b-q4_k_m").reason
    )


def test_models_that_fit_on_the_disk_one_by_one_and_not_together_are_told() -> None:
    # (0.809 × 2 + 35 × 0.6 + 0.1 × 4) × 10⁹ bytes = 21.4 GiB
    asked = machine(gpu(24), disk_free_gib=20)
    made = plan(asked, shelf=Shelf(here={"whisper-base"}))
    told = "all that is to be fetched is 21.4 GiB, and on the disk 20.0 GiB are free"
    assert told in [str(why) for why in first(made, "llm").reasons]
    assert told not in [str(why) for why in first(plan(asked), "llm").reasons]


def test_a_file_that_the_user_names_is_counted_by_its_size() -> None:
    shelf = Shelf()
    shelf.files = {"/m/own.gguf": {"own.gguf": 4 * 2**30}, "/m/empty.gguf": {"empty.gguf": 0}}
    # 4 + 144 KiB × 8192 + 0.3
    llm = first(plan(machine(), shelf=shelf, llm={"model": "/m/own.gguf"}), "llm")
    assert llm.memory_gib == 5.43
    assert "/m/own.gguf is not" not in str(llm.reasons)
    unseen = first(plan(machine(), shelf=shelf, llm={"model": "/m/other.gguf"}), "llm")
    assert any("/m/other.gguf is not known here and not in the sum" in str(why) for why in unseen.reasons)
    empty = plan(machine(), shelf=shelf, llm={"model": "/m/empty.gguf"})
    assert missing(empty) == ["llm"]
    assert str(refused(empty, "/m/empty.gguf").reason) == "/m/empty.gguf is empty: there is no model in it"


def test_a_folder_of_which_nothing_is_seen_is_refused_for_an_engine_that_needs_a_card() -> None:
    made = plan(machine(gpu(24)), llm={"engine": "vllm", "model": "/m/checkpoint"})
    assert missing(made) == ["llm"]
    assert "how much memory" in str(refused(made, "/m/checkpoint").reason)


NAMED = {
    "/m/own.gguf": {"own.gguf": 4 * 2**30},
    "/m/checkpoint": {
        "model-00001-of-00002.safetensors": 3 * 2**30,
        "model-00002-of-00002.safetensors": 2**30,
    },
    "/m/whisper": {"model.bin": 2**30},
    "/m/voice": {"onnx/decoder.onnx": 2**28},
}


@pytest.mark.parametrize(
    ("asked", "stage", "wanted"),
    [
        # 4 + 144 KiB × 4096 = 0.57 + 1
        ({"llm": {"model": "/m/own.gguf"}}, "llm", ("llama_cpp", "/m/own.gguf", "cuda:0", 5.57)),
        # 4 + 0.57 (FP8) + 0.43 + 1
        (
            {"llm": {"engine": "vllm", "model": "/m/checkpoint"}},
            "llm",
            ("vllm", "/m/checkpoint", "cuda:0", 6.0),
        ),
        ({"stt": {"model": "/m/whisper"}}, "stt", ("faster_whisper", "/m/whisper", "cuda:0", 2.0)),
        (
            {"tts": {"engine": "supertonic", "model": "/m/voice"}},
            "tts",
            ("supertonic", "/m/voice", "cuda:0", 1.25),
        ),
    ],
)
def test_what_is_named_by_where_it_lies_goes_onto_the_card(
    asked: dict[str, Any], stage: Stage, wanted: Row
) -> None:
    shelf = Shelf()
    shelf.files = NAMED
    engine = first(plan(machine(gpu(140, capability="9.0")), shelf=shelf, ahead=False, **asked), stage)
    assert row(engine) == wanted
    assert engine.model_path == Path(wanted[1])
    assert not {"plan_to_fetch", "plan_file_unseen"} & {reason.code for reason in engine.reasons}


def test_what_is_named_by_where_it_lies_and_does_not_fit_is_refused_with_its_sum() -> None:
    shelf = Shelf()
    shelf.files = NAMED
    made = plan(machine(gpu(5)), shelf=shelf, llm={"model": "/m/own.gguf"})
    assert missing(made) == ["llm"]
    assert "= 5.57 GiB; there is card 5.00" in str(refused(made, "/m/own.gguf").reason)


@pytest.mark.parametrize(
    ("model", "facts", "engine", "why"),
    [
        # No file of it is seen.
        ("/m/other.gguf", machine(gpu(24)), "llama_cpp", "plan_size_unknown"),
        # This one computes on the processor alone.
        ("/m/own.gguf", machine(gpu(24)), "llama_server", "plan_not_on_device"),
        ("/m/own.gguf", machine(), "auto", "plan_not_on_device"),
    ],
)
def test_a_device_that_was_asked_for_is_no_silent_processor_for_what_was_named_either(
    model: str, facts: Facts, engine: str, why: str
) -> None:
    shelf = Shelf()
    shelf.files = NAMED
    made = plan(facts, shelf=shelf, llm={"model": model, "engine": engine}, plan={"device": "cuda"})
    assert missing(made) == ["llm"]
    told = refused(made, model).reason
    assert told.code == why
    assert "{" not in told.in_language("en") + told.in_language("ko")


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        ({"llm": {"model": "whisper-base"}}, 'llm.model: "whisper-base" is a model for stt, not for llm'),
        (
            {"engines": {"vllm": {"kv_cache_memory_bytes": -5}}},
            "engines.vllm.kv_cache_memory_bytes: should be 0 or more (found -5)",
        ),
        (
            {"engines": {"llama_cpp": {"context_length": 0}}},
            "engines.llama_cpp.context_length: should be 1 or more (found 0)",
        ),
    ],
)
def test_wishes_that_cannot_be_meant_are_told_with_their_key(wishes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan(machine(gpu(24)), **wishes)
    assert told in str(raised.value)


def test_where_card_and_machine_share_one_memory_it_is_promised_once() -> None:
    # 36 × 2/3 − 0.3 = 23.7 for Metal; the main memory's 35.5 hold the same bytes.
    mac = {"os": "darwin", "arch": "arm64", "unified_memory": True, "memory_gb_s": 150}
    made = plan(machine(ram=36, **mac))
    assert sum(engine.memory_gib for engine in made.launched) <= 35.5
    # Of 26 GiB 17.03 are the GPU's, enough for 32 of 40 layers: 15.65 + 0.07 + 0.05 + 0.80 = 16.57. Beside
    # them are 25.5 − 17.03 = 8.47, less three programs (1200 + 2 × 700 MiB = 2.54) 5.93, enough for the other
    # 3.93 of 20.50. Of 23: 15.03, 28 layers are 14.61, and 22.5 − 15.03 − 2.54 = 4.93 for the other 5.89.
    named: dict[str, Any] = {"llm": {"model": "qwen3.5-35b-a3b-q4_k_m"}}
    assert first(plan(machine(ram=26, **mac), **named), "llm").memory_gib == 20.5
    assert missing(plan(machine(ram=23, **mac), **named)) == ["llm"]


def test_what_is_kept_free_of_the_main_memory_is_kept_free_by_apples_gpu_too() -> None:
    # 24 − 16 − 0.3 = 7.7, where two thirds would be 16.
    mac = machine(ram=24, os="darwin", arch="arm64", unified_memory=True)
    made = plan(mac, plan={"memory_reserve_gib": 16.0})
    assert row(first(made, "llm")) == ("llama_cpp", "qwen3-8b-q4_k_m", "metal", 5.95)


def test_a_memory_that_is_shared_holds_the_processors_engines_beside_the_cards() -> None:
    # 8 − 1.5 = 6.5 for the card; 3.62 there leave 3.88 of the memory's 7.5 to 0.32 + 0.68 + 0.04.
    shared = machine(gpu(8), ram=8, unified_memory=True)
    made = plan(shared, plan={"memory_reserve_gib": 0.5})
    assert sum(engine.memory_gib for engine in made.launched) <= 7.5
    # With 3.0 kept free: 4.0 for the card and 5.0 in all; 3.62 + 0.32 (its program) + 0.32 + 0.68 + 0.04
    # = 4.98. With 3.1, even without the last-resort voice 4.94 of 4.9: so the language model is that of the
    # processor, 0.51.
    made = plan(shared, plan={"memory_reserve_gib": 3.0})
    assert (first(made, "llm").device, missing(made)) == ("cuda:0", [])
    made = plan(shared, plan={"memory_reserve_gib": 3.1})
    assert (first(made, "llm").device, missing(made)) == ("cpu", [])


def test_several_cards_with_one_memory_are_promised_no_more_than_it() -> None:
    # 32 / 2 − 1.5 = 14.5 each: 14B and recognizer on one of them, 27B (16.88) on none.
    made = plan(machine(gpu(32, capability="8.0"), gpu(32, capability="8.0"), ram=32, unified_memory=True))
    assert sum(engine.memory_gib for engine in made.launched) <= 31.5


def test_sixty_four_cards_are_planned_as_one_card_is_where_one_is_enough() -> None:
    made = plan(machine(*[gpu(24)] * 64))
    assert [first(made, stage).device for stage in ("stt", "llm")] == ["cuda:0", "cuda:1"]
    assert first(made, "llm").model == "qwen3.5-35b-a3b-q4_k_m"


def test_two_cards_that_are_alike_are_two() -> None:
    # 7.7 each: the recognizer on one, 14B over both (9.69 + 0.5).
    twice = [gpu(8, capability="8.0")] * 2
    made = plan(machine(*twice))
    assert first(made, "llm").device == "cuda" and first(made, "llm").memory_gib == 10.19


def test_the_card_can_be_left_alone() -> None:
    made = plan(machine(gpu(80)), plan={"device": "cpu"})
    assert {engine.device for engine in made.launched} == {"cpu"}


def test_what_is_not_fetched_is_planned_ahead_and_not_started() -> None:
    shelf = Shelf(here={"whisper-base", "smollm2-135m-instruct", "qwen3-8b-q4_k_m"})
    facts = machine(gpu(24))
    assert row(first(plan(facts, shelf=shelf), "llm")) == Q4["35b"]
    told = " ".join(map(str, first(plan(facts, shelf=shelf), "llm").reasons))
    assert "to be fetched first (21.0 GB): ondam models add qwen3.5-35b-a3b-q4_k_m" in told
    now = plan(facts, shelf=shelf, ahead=False)
    assert (row(first(now, "stt")), row(first(now, "llm"))) == (BASE, Q4["8b"])


def test_what_does_not_fit_on_the_disk_is_refused() -> None:
    made = plan(machine(gpu(24), disk_free_gib=10), shelf=Shelf(here=set()))
    assert first(made, "llm").model == "qwen3-14b-q4_k_m"
    assert "its 19.6 GiB do not fit on the disk, where 10.0 GiB are free" in str(
        refused(made, "qwen3.5-35b-a3b-q4_k_m").reason
    )


@pytest.mark.parametrize(("disk", "fits"), [(17, True), (16, False)])
def test_what_becomes_smaller_while_it_loads_is_fetched_as_large_as_it_is(disk: float, fits: bool) -> None:
    # 9 × 2 × 10⁹ bytes = 16.8 GiB on the disk; 9 × 1 in memory.
    asked = machine(gpu(24), disk_free_gib=disk)
    made = plan(asked, shelf=Shelf(here={"whisper-base"}), llm={"model": "qwen3.5-9b-fp8"})
    if fits:
        llm = first(made, "llm")
        assert llm.need is not None and llm.need.of("weights") == 8.39
        assert "to be fetched first (18.0 GB)" in " ".join(map(str, llm.reasons))
    else:
        assert "its 16.8 GiB do not fit on the disk" in str(refused(made, "qwen3.5-9b-fp8").reason)


def test_an_address_leaves_the_card_to_the_others() -> None:
    made = plan(machine(gpu(8)), llm={"url": "http://rack:8000/v1"})
    assert [row(first(made, stage)) for stage in ("stt", "tts")] == [ASR, VOICE]


def test_memory_that_is_too_small_for_the_processors_engines_is_told() -> None:
    made = plan(machine(ram=1.2), "en")
    # 0.32 + 0.51 + 0.28 + 0.04 = 1.15 of 0.7: without the spare voice 1.11, without the language model 0.6.
    assert missing(made) == ["llm"]
    assert [no.engine for no in made.refused if no.budget_gib is not None and no.device == "cpu"] == [
        "espeak",
        "llama_server",
    ]


def test_the_main_memory_must_hold_the_programs_of_what_is_on_a_card() -> None:
    # 2.5 of 3: vLLM's program takes 5.86; llama.cpp's 0.32, the recognizer's 0.69, the voice's 1.18.
    made = plan(machine(gpu(48), ram=3))
    assert [row(first(made, stage)) for stage in ("stt", "llm", "tts")] == [ASR, Q4["35b"], VOICE]
    assert sum(engine.main_gib(shared=False) for engine in made.launched) <= 2.5
    no = refused(made, "qwen3.5-35b-a3b-fp8")
    assert no.reason.in_language("en").startswith("needs its program, in main memory, 5.86 = 5.86 GiB;")
    assert no.need is not None and no.budget_gib is not None and no.need.gib > no.budget_gib


def test_what_was_measured_takes_the_place_of_the_estimate() -> None:
    measured = {"llama_cpp/qwen3-14b-q4_k_m/cuda/extra": 4.61}
    made = consider(machine(gpu(16)), config(), ENGINES, Shelf(), ahead=True, measured=measured)
    # 8.26 + 0.63 + 4.61 + 0.1 + 2.51 + 0.3 = 16.41; 9 × 1 = 8.39 + 0.13 + 0.39 + 2.50 = 11.41 fits.
    assert first(made, "llm").model == "qwen3.5-9b-fp8"
    assert refused(made, "qwen3-14b-q4_k_m").need is not None
    assert "13.60 GiB" in str(refused(made, "qwen3-14b-q4_k_m").reason)


def test_a_device_that_was_asked_for_and_is_not_there_is_no_silent_processor() -> None:
    made = plan(machine(), plan={"device": "cuda"})
    assert missing(made) == ["llm"]
    assert {no.reason.code for no in made.refused if no.stage == "llm"} == {"plan_no_card", "plan_on_request"}


def test_a_card_that_others_have_filled_is_told_by_its_sum() -> None:
    made = plan(machine(gpu(24, free_gib=0.1)))
    assert row(first(made, "llm")) == SMOLLM
    assert (
        "there is card 24.00 − other programs 23.90 − kept free 0.30 = -0.20 GiB: 3.82 GiB too little"
        in str(refused(made, "qwen3-4b-q4_k_m").reason)
    )


def test_an_imported_model_is_put_where_its_file_fits() -> None:
    part = {"path": "own.gguf", "size": 5 * 2**30, "sha256": "a" * 64}
    own = {
        "id": "own",
        "stage": "llm",
        "languages": ["ko"],
        "licence": "MIT",
        "files": [part],
        "entry": "own.gguf",
    }
    shelf = Shelf(ModelCard.model_validate(own))
    # 5 + 144 KiB × 4096 = 0.57 + 1
    llm = first(plan(machine(gpu(12)), shelf=shelf, llm={"model": "own"}), "llm")
    assert row(llm) == ("llama_cpp", "own", "cuda:0", 6.57)
    assert row(first(plan(machine(), shelf=shelf, llm={"model": "own"}), "llm"))[:3] == (
        "llama_server",
        "own",
        "cpu",
    )


def test_an_imported_whisper_is_for_whisper_alone() -> None:
    part = {"path": "model.bin", "size": 2**30, "sha256": "a" * 64}
    own = {"id": "own", "stage": "stt", "languages": ["ko"], "licence": "MIT", "files": [part]}
    shelf = Shelf(ModelCard.model_validate(own))
    stt = first(plan(machine(gpu(24)), shelf=shelf, stt={"model": "own"}), "stt")
    assert row(stt) == ("faster_whisper", "own", "cuda:0", 2.0)


def test_what_the_user_named_for_a_card_and_does_not_fit_there_does_not_go_to_the_processor() -> None:
    made = plan(machine(gpu(4)), tts={"engine": "qwen_tts"})
    assert missing(made) == ["tts"]
    assert "2.14 GiB too little" in str(refused(made, "qwen3-tts-1.7b").reason)
    # Without a card nobody could have meant one.
    assert row(first(plan(machine(), tts={"engine": "qwen_tts"}), "tts"))[:3] == (
        *("qwen_tts", "qwen3-tts-1.7b"),
        "cpu",
    )
