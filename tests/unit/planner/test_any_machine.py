"""What holds on every machine."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.planner.machines import ENGINES, gpu, machine, plan

from ondam.planner.choose import missing
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan, PlannedEngine
from ondam.types import Stage

SIZES = st.floats(1, 200).map(lambda gib: round(gib, 2))

CARDS = st.builds(
    lambda vram, used, driver, capability, bandwidth: gpu(
        vram, driver, capability, free_gib=round(vram * (1 - used), 2), **bandwidth
    ),
    SIZES,
    st.floats(0, 1),
    st.sampled_from(["595.1", "580.65", "570.124", "550.54", "525.6", "470.1"]),
    st.sampled_from(["6.1", "7.5", "8.0", "8.9", "9.0", "12.0"]),
    st.one_of(st.just({}), st.floats(50, 5000).map(lambda gb: {"bandwidth_gb_s": round(gb)})),
)

MACHINES = st.builds(
    lambda cards, ram, known: (cards, ram, known),
    st.lists(CARDS, max_size=3),
    st.one_of(st.floats(2, 12), st.floats(4, 512)).map(round),
    st.one_of(st.just({}), st.floats(10, 800).map(lambda gb: {"memory_gb_s": round(gb)})),
)

WISHES = st.sampled_from(
    [
        {},
        {"plan": {"prefer": "quality"}},
        {"plan": {"prefer": "speed"}},
        {"plan": {"device": "cpu"}},
        {"stt": {"engine": "qwen_asr"}},
        {"tts": {"engine": "qwen_tts"}},
        {"stt": {"model": "whisper-base"}, "llm": {"model": "smollm2-135m-instruct"}},
        {"llm": {"model": "qwen3.5-35b-a3b-q4_k_m"}},
        {"llm": {"engine": "vllm"}, "stt": {"engine": "qwen_asr"}, "tts": {"engine": "qwen_tts"}},
    ]
)

LANGUAGES = st.sampled_from(["ko", "en"])


def made(found: tuple[list[dict[str, Any]], int, dict[str, Any]]) -> Facts:
    cards, ram, known = found
    return machine(*cards, ram=ram, **known)


def size(engine: PlannedEngine | None) -> float:
    """Of a model, in thousand millions of parameters; what comes with Ondam is the smallest of all."""
    cards = {card.id: card for folder in ENGINES.values() for card in folder.manifest.models}
    return (cards[engine.model].parameters_b or 0.0) if engine is not None and engine.model in cards else 0.0


def of(found: Plan, stage: Stage) -> PlannedEngine | None:
    return next((each for each in found.launched if each.stage == stage and not each.spare), None)


@settings(max_examples=200, deadline=None)
@given(MACHINES, WISHES, LANGUAGES)
def test_no_card_is_ever_promised_more_than_it_has(found: Any, wishes: Any, language: str) -> None:
    facts = made(found)
    used: defaultdict[str, float] = defaultdict(float)
    for engine in plan(facts, language, **wishes).launched:
        assert engine.need is not None
        used[engine.device] += engine.need.gib
    together = used.pop("cuda", 0.0)
    for device in [name for name in used if name.startswith("cuda:")]:
        index = int(device.removeprefix("cuda:"))
        assert used[device] <= facts.gpus[index].free_gib - 0.3 + 1e-6
    on_cards = together + sum(gib for name, gib in used.items() if name.startswith("cuda:"))
    assert on_cards <= sum(max(0.0, card.free_gib - 0.3) for card in facts.gpus) + 1e-6
    assert used.get("cpu", 0.0) <= facts.ram_gib - 0.5 + 1e-6


@settings(max_examples=200, deadline=None)
@given(MACHINES, WISHES, st.booleans())
def test_the_main_memory_holds_every_program(found: Any, wishes: Any, shared: bool) -> None:
    cards, ram, known = found
    tried = plan(machine(*cards, ram=ram, **known, unified_memory=shared), **wishes)
    assert sum(each.main_gib(shared=shared) for each in tried.launched) <= ram - 0.5 + 1e-6


@settings(max_examples=200, deadline=None)
@given(MACHINES, st.integers(0, 2), st.floats(0, 100), WISHES)
def test_more_memory_never_means_a_smaller_model(found: Any, which: int, more: float, wishes: Any) -> None:
    cards, ram, known = found
    if not cards:
        return
    before = plan(made(found), **wishes)
    index, gib = which % len(cards), round(more, 2)
    card = cards[index]
    larger = {**card, "vram_gib": card["vram_gib"] + gib, "free_gib": card["free_gib"] + gib}
    after = plan(made(([*cards[:index], larger, *cards[index + 1 :]], ram, known)), **wishes)
    for stage in ("stt", "llm", "tts"):
        assert size(of(before, stage)) <= size(of(after, stage)), stage


SUM = re.compile(r"([^;:=]*) = (-?\d+\.\d\d) GiB")
ADDEND = re.compile(r"([+−] )?[^+−]*? (\d+\.\d\d)(?= |$)")


@settings(max_examples=100, deadline=None)
@given(MACHINES, WISHES, st.booleans())
def test_every_sum_that_a_person_reads_adds_up(found: Any, wishes: Any, shared: bool) -> None:
    cards, ram, known = found
    made_plan = plan(machine(*cards, ram=ram, **known, unified_memory=shared), **wishes)
    told = [*(no.reason for no in made_plan.refused), *(r for e in made_plan.launched for r in e.reasons)]
    for body, total in (
        sums for why in told for words in ("en", "ko") for sums in SUM.findall(why.in_language(words))
    ):
        parts = [float(gib) * (-1 if sign == "− " else 1) for sign, gib in ADDEND.findall(body)]
        assert parts and round(sum(parts), 2) == float(total), body


@settings(max_examples=100, deadline=None)
@given(MACHINES, WISHES)
def test_a_memory_that_is_shared_is_never_promised_twice(found: Any, wishes: Any) -> None:
    cards, ram, known = found
    made_plan = plan(machine(*cards, ram=ram, **known, unified_memory=True), **wishes)
    assert sum(engine.memory_gib for engine in made_plan.launched) <= ram - 0.5 + 1e-6


@settings(max_examples=100, deadline=None)
@given(MACHINES, WISHES)
def test_a_stage_that_is_empty_has_a_refusal(found: Any, wishes: Any) -> None:
    made_plan = plan(made(found), **wishes)
    assert set(missing(made_plan)) <= {no.stage for no in made_plan.refused}


@settings(max_examples=200, deadline=None)
@given(MACHINES, WISHES)
def test_every_refusal_for_room_says_its_sum_and_what_there_was(found: Any, wishes: Any) -> None:
    for no in plan(made(found), **wishes).refused:
        for language in ("en", "ko"):
            told = no.reason.in_language(language)
            assert told and "{" not in told
            if no.reason.code == "plan_does_not_fit":
                assert no.need is not None and no.budget_gib is not None
                assert f"= {no.need.gib:.2f} GiB" in told and f"= {no.budget_gib:.2f} GiB" in told
                assert f"{no.need.gib - no.budget_gib:.2f} GiB" in told
                assert no.need.gib > no.budget_gib


@settings(max_examples=100, deadline=None)
@given(MACHINES, WISHES)
def test_a_stage_is_served_or_its_refusal_is_told(found: Any, wishes: Any) -> None:
    tried = plan(made(found), **wishes)
    for stage in ("stt", "llm", "tts"):
        assert of(tried, stage) is not None or any(no.stage == stage for no in tried.refused)
