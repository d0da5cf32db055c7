from __future__ import annotations

from pathlib import Path

import pytest

from ondam_engines.supertonic.prepared import NotWarmed, Prepared

FACTS = {"card": "H200", "driver": "580.65", "dtype": "float32"}


def made(cache: Path, facts: dict[str, str]) -> Prepared:
    prepared = Prepared(cache, facts)
    prepared.begin()
    prepared.mark()
    return prepared


def test_what_was_never_prepared_is_told_so_with_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(NotWarmed, match=r"it never was.*ondam engines warm supertonic"):
        Prepared(tmp_path / "none", FACTS).need()


def test_what_was_prepared_serves_the_same_facts_in_any_order(tmp_path: Path) -> None:
    first = made(tmp_path, FACTS)
    again = Prepared(tmp_path, dict(reversed(FACTS.items())))
    again.need()
    assert again.folder == first.folder


def test_another_driver_needs_another_preparation_and_is_named(tmp_path: Path) -> None:
    made(tmp_path, FACTS)
    with pytest.raises(NotWarmed, match="other driver"):
        Prepared(tmp_path, FACTS | {"driver": "590.1"}).need()


def test_half_made_counts_for_nothing(tmp_path: Path) -> None:
    prepared = made(tmp_path, FACTS)
    prepared.begin()
    assert not prepared.made


def test_only_float16_asks_tensorrt_for_it(tmp_path: Path) -> None:
    options = Prepared(tmp_path, FACTS).tensorrt()
    assert options["trt_fp16_enable"] == "0"
    assert options["trt_engine_cache_path"] == options["trt_timing_cache_path"]
    assert Prepared(tmp_path, FACTS | {"dtype": "float16"}).tensorrt()["trt_fp16_enable"] == "1"
