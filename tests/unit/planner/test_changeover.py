"""Whether the new one may be started beside the old one: sums that can be added up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ondam.config import PlanConfig, load
from ondam.planner.arithmetic import sum_of
from ondam.planner.changeover import changeover
from ondam.planner.facts import Facts, Gpu
from ondam.planner.plan import Plan, PlannedEngine
from ondam.types import Stage


def engine(stage: Stage, model: str, gib: float, device: str = "cpu", **changed: object) -> PlannedEngine:
    made = PlannedEngine(
        engine=f"the_{stage}",
        stage=stage,
        model=model,
        model_path=None,
        model_sha256=None,
        device=device,
        threads=2,
        language="en",
        memory_gib=gib,
        need=sum_of(("weights", gib)),
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def machine(gib: float, *cards: Gpu, unified: bool = False) -> Facts:
    memory_mib = round(gib * 1024)
    return Facts(8, 8, "x", frozenset(), memory_mib, "linux", "x86_64", cards, unified_memory=unified)


def card(gib: float, free: float | None = None) -> Gpu:
    return Gpu("a card", gib, gib if free is None else free, "580.65", "8.9")


SETTINGS: PlanConfig = load(None).plan
"""0.5 GiB of the machine's memory and 0.3 of each card stay free."""

EARS, VOICE = engine("stt", "ears", 0.5), engine("tts", "voice", 0.2)


def plan(*llm: PlannedEngine) -> Plan:
    return Plan((EARS, *llm, VOICE))


def test_only_what_differs_goes_and_comes() -> None:
    old, new = engine("llm", "old", 2.0), engine("llm", "new", 2.0)
    change = changeover(plan(old), plan(new), machine(16), SETTINGS, 10.0)
    assert (change.stays, change.goes, change.comes) == ((EARS, VOICE), (old,), (new,))
    assert change.stages == {"llm"} and change.beside


def test_other_reasons_or_sums_are_no_difference() -> None:
    old = engine("llm", "old", 2.0)
    same = replace(old, memory_gib=2.1, need=None, reason="plan_configured")
    change = changeover(plan(old), plan(same), machine(16), SETTINGS, 10.0)
    assert (change.goes, change.comes, change.stages) == ((), (), frozenset())
    assert change.plan == plan(old), "it runs as it was started"


@pytest.mark.parametrize(
    ("ram", "beside"),
    [
        # 0.5 + 0.2 + 2.0 + 3.0 = 5.7, and 0.5 stay free.
        (6.2, True),
        (6.19, False),
    ],
)
def test_the_machines_memory_must_hold_both_and_all_others(ram: float, beside: bool) -> None:
    old, new = engine("llm", "old", 2.0), engine("llm", "new", 3.0)
    change = changeover(plan(old), plan(new), machine(ram), SETTINGS, 64.0)
    assert change.beside is beside and not change.lacking


@pytest.mark.parametrize(("available", "beside"), [(3.5, True), (3.49, False)])
def test_what_others_use_now_is_not_free(available: float, beside: bool) -> None:
    old, new = engine("llm", "old", 2.0), engine("llm", "new", 3.0)
    assert changeover(plan(old), plan(new), machine(64), SETTINGS, available).beside is beside


@pytest.mark.parametrize(
    ("free", "beside"),
    [
        # 9 + 12 = 21 on the card, of which 0.3 stay free; our own memory counts as free.
        (21.3, True),
        (21.29, False),
        # Neighbours hold 10 of the 24.
        (14.0, False),
    ],
)
def test_a_card_must_hold_both(free: float, beside: bool) -> None:
    old, new = engine("llm", "old", 9.0, "cuda:0"), engine("llm", "new", 12.0, "cuda:0")
    change = changeover(plan(old), plan(new), machine(64, card(24, free)), SETTINGS, 60.0)
    assert change.beside is beside and not change.lacking
    if not beside:
        assert "21.00 GiB" in change.short[0].in_language("en")
        assert "21.00 GiB" in change.short[0].in_language("ko")


def test_from_one_card_to_the_other_is_beside() -> None:
    old, new = engine("llm", "old", 9.0, "cuda:0"), engine("llm", "new", 9.0, "cuda:1")
    facts = machine(64, card(10), card(10))
    assert changeover(plan(old), plan(new), facts, SETTINGS, 60.0).beside


def test_one_that_lies_over_all_cards_is_counted_on_each() -> None:
    old, new = engine("llm", "old", 6.0, "cuda:1"), engine("llm", "new", 12.0, "cuda")
    assert not changeover(plan(old), plan(new), machine(64, card(16), card(16)), SETTINGS, 60.0).beside
    assert changeover(plan(old), plan(new), machine(64, card(19), card(19)), SETTINGS, 60.0).beside


def test_layers_in_the_main_memory_are_counted_there() -> None:
    # 20 GiB of which 8 lie on the card: 12 in the main memory, beside 0.7 of the others.
    new = engine("llm", "new", 20.0, "cuda:0", need=sum_of(("weights", 8.0)))
    old = engine("llm", "old", 1.0, "cuda:0")
    assert changeover(plan(old), plan(new), machine(13.2, card(12)), SETTINGS, 13.0).beside
    assert changeover(plan(old), plan(new), machine(13.1, card(12)), SETTINGS, 13.0).lacking


def test_where_processor_and_card_share_one_memory_both_are_counted_in_it() -> None:
    old, new = engine("llm", "old", 9.0, "cuda:0"), engine("llm", "new", 9.0, "cuda:0")
    assert not changeover(plan(old), plan(new), machine(16, card(16), unified=True), SETTINGS, 16.0).beside


def test_what_has_no_room_even_alone_is_told() -> None:
    old, new = engine("llm", "old", 1.0), engine("llm", "new", 4.0)
    change = changeover(plan(old), plan(new), machine(5.0), SETTINGS, 4.0)
    # 0.5 + 0.2 + 4.0 = 4.7 of 4.5.
    assert "0.20 GiB are missing" in change.lacking[0].in_language("en")


TURING = (card(8), card(8))
"""7.7 GiB each for us."""


def test_what_lies_over_several_cards_takes_of_each_what_the_others_leave() -> None:
    # The recognizer's 2.51 on the first leave 5.19 + 7.7 = 12.89, and over both lie 10.81.
    ears = engine("stt", "ears", 2.51, "cuda:0")
    old, new = engine("llm", "old", 6.0, "cuda:1"), engine("llm", "new", 10.81, "cuda")
    change = changeover(Plan((ears, old)), Plan((ears, new)), machine(64, *TURING), SETTINGS, 60.0)
    assert not change.lacking and not change.beside


def test_what_lies_over_several_cards_and_does_not_fit_is_told_by_what_the_others_leave() -> None:
    ears = engine("stt", "ears", 2.51, "cuda:0")
    old, new = engine("llm", "old", 6.0, "cuda:1"), engine("llm", "new", 12.9, "cuda")
    change = changeover(Plan((ears, old)), Plan((ears, new)), machine(64, *TURING), SETTINGS, 60.0)
    (told,) = change.lacking
    assert told.in_language("en") == (
        "cuda: it and the engines that stay need 12.90 GiB, and there are"
        " card 16.00 − kept free 0.60 − planned before 2.51 = 12.89 GiB; 0.01 GiB are missing."
    )
    assert "12.90 GiB" in told.in_language("ko")


@pytest.mark.parametrize(("gib", "fits"), [(4.59, True), (4.6, False)])
def test_beside_one_that_lies_over_all_cards_there_is_what_it_leaves(gib: float, fits: bool) -> None:
    # 2 × 7.7 − 10.81 = 4.59
    over = engine("llm", "over", 10.81, "cuda")
    new = engine("stt", "new", gib, "cuda:0")
    change = changeover(Plan((EARS, over)), Plan((new, over)), machine(64, *TURING), SETTINGS, 60.0)
    assert (not change.lacking) is fits
