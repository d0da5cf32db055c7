from __future__ import annotations

from typing import Any

import pytest

from ondam.models.card import ModelCard
from ondam.planner.arithmetic import (
    cache_factor,
    card_budget,
    card_need,
    kv_gib,
    less,
    over_cards,
    spill,
    sum_of,
    tokens_per_s,
    up,
    weights_gib,
)


def card(**known: Any) -> ModelCard:
    base = {"id": "m", "stage": "llm", "languages": ["ko"], "licence": "MIT", "repository": "o/m"}
    return ModelCard.model_validate({**base, **known})


MOE = card(
    parameters_b=35.0,
    active_b=3.0,
    layers=40,
    bytes_per_parameter=0.6,
    kv_bytes_per_token=20480,
    state_mib_per_sequence=60.0,
    needs_gib_extra=0.8,
)


@pytest.mark.parametrize(
    ("parameters_b", "bytes_each", "gb"),
    [(35, 2, 70), (35, 1, 35), (35, 0.6, 21), (8.19, 1, 8.19), (4.02, 0.6, 2.412)],
)
def test_weights_are_all_parameters_times_their_bytes(
    parameters_b: float, bytes_each: float, gb: float
) -> None:
    assert weights_gib(parameters_b, bytes_each) * 2**30 / 1e9 == pytest.approx(gb)


def test_a_mixture_of_experts_counts_every_expert() -> None:
    assert card_need(MOE) == card_need(MOE.model_copy(update={"active_b": 35.0}))


def test_keys_and_values_are_bytes_times_tokens_times_sessions() -> None:
    # Qwen3-8B: 2 × 36 layers × 8 heads × 128 × 2 bytes = 144 KiB; × 4096 tokens × 2 = 1.125 GiB.
    assert kv_gib(147_456, 4096, 2) == 1.125
    assert kv_gib(147_456, 4096, 2, "fp8_e4m3") == 0.5625


@pytest.mark.parametrize(
    ("cache", "part"),
    [("auto", 1), ("f16", 1), ("bf16", 1), ("fp8", 0.5), ("q8_0", 34 / 64), ("q4_0", 18 / 64)],
)
def test_the_type_of_the_cache_counts(cache: str, part: float) -> None:
    assert cache_factor(cache) == pytest.approx(part, abs=1e-4)


def test_each_addend_is_rounded_up_so_that_the_sum_a_person_reads_adds_up() -> None:
    need = card_need(MOE, tokens=4096, sessions=2)
    assert need is not None
    # 21 GB; 20 KiB × 8192; 2 × 60 MiB.
    assert [addend.gib for addend in need.addends] == [19.56, 0.16, 0.12, 0.8]
    assert need.gib == 20.64
    assert str(need.told) == (
        "weights 19.56 + key/value cache 0.16 + state of each sequence 0.12 + graphs and workspace 0.80"
        " = 20.64 GiB"
    )
    assert need.told.in_language("ko").endswith("그래프와 작업 공간 0.80 = 20.64 GiB")


@pytest.mark.parametrize(
    ("exact", "rounded"), [(0.1, 0.1), (0.3, 0.3), (1.001, 1.01), (2.5, 2.5), (0.0, 0.0)]
)
def test_what_is_a_hundredth_already_stays(exact: float, rounded: float) -> None:
    assert up(exact) == rounded


def test_a_file_on_the_disk_is_as_large_as_it_is_and_an_unknown_cache_counts_as_a_large_one() -> None:
    part = {"path": "m.gguf", "size": 2**30, "sha256": "a" * 64}
    need = card_need(card(repository=None, files=[part], entry="m.gguf"), tokens=4096, sessions=2)
    assert need is not None
    assert (need.of("weights"), need.of("kv"), need.of("extra")) == (1.0, 1.13, 1.0)


def test_a_model_of_unknown_size_has_no_sum() -> None:
    assert card_need(card()) is None


def test_a_cards_budget_is_less_what_others_hold_and_what_stays_free() -> None:
    budget = card_budget(80.0, 12.0, 0.3)
    assert budget.gib == 67.7
    assert str(less(budget, 5.69).told) == (
        "card 80.00 − other programs 12.00 − kept free 0.30 − planned before 5.69 = 62.01 GiB"
    )


def test_a_budget_that_begins_with_nothing_says_so() -> None:
    assert str(card_budget(0.001, 0.0, 0.3).told) == "card 0.00 − kept free 0.30 = -0.30 GiB"


def test_over_several_cards_each_further_one_takes_half_a_gibibyte() -> None:
    need = sum_of(("weights", 10.0))
    assert (over_cards(need, 1).gib, over_cards(need, 3).gib) == (10.0, 11.0)


def test_decoding_reads_the_active_weights_once_a_token() -> None:
    # 3e9 × 0.6 = 1.8 GB a token; 0.7 × 180 GB/s.
    assert tokens_per_s(MOE, 180.0) == pytest.approx(70)
    assert tokens_per_s(MOE, None) is None


def test_layers_that_do_not_fit_lie_in_main_memory_and_are_read_from_there() -> None:
    need = card_need(MOE, tokens=4096, sessions=2)
    assert need is not None
    parts = spill(MOE, need, 11.9, 60.0, 450.0)
    assert parts is not None
    # 22 of 40: 10.76 of weights, 0.09 of the cache, 0.07 of the state, and all of the workspace, 0.80; 23
    # would take 12.22. The other 8.92 of 20.64 are in main memory.
    assert [addend.gib for addend in parts.on_card.addends] == [10.76, 0.09, 0.07, 0.8]
    assert (parts.layers, parts.on_card.gib, parts.in_memory_gib) == (22, 11.72, 8.92)
    # 1.8 GB a token: 18/40 of it, 0.81, from memory at 60 GB/s, 0.99 from the card at 450 GB/s.
    assert parts.tokens_per_s == pytest.approx(0.7 / (0.81 / 60 + 0.99 / 450))


def test_one_layer_has_to_fit_and_a_token_to_read_little() -> None:
    need = card_need(MOE, tokens=4096, sessions=2)
    assert need is not None
    # 0.49 + 0.01 + 0.01 + 0.80
    assert spill(MOE, need, 1.3, 60.0, 450.0) is None
    one = spill(MOE, need, 1.31, 60.0, 450.0)
    assert one is not None and one.layers == 1
    assert spill(card(parameters_b=27.0, layers=64, bytes_per_parameter=0.6), need, 11.9, 60.0, 450.0) is None


def test_without_a_known_bandwidth_no_speed_is_made_up() -> None:
    need = card_need(MOE, tokens=4096, sessions=2)
    assert need is not None
    parts = spill(MOE, need, 11.9, None, 450.0)
    assert parts is not None and parts.tokens_per_s is None
