from __future__ import annotations

from pathlib import Path

import pytest

from ondam.errors import EngineError
from ondam.messages import Phrase
from ondam.planner.gpus import Card, Sight
from ondam.supervisor.driver import gate, runnable
from ondam.supervisor.environment import variant_for
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.supervisor.stamp import Stamp

LOCKS = {"cpu": "c.lock", "cu12": "12.lock", "cu13": "13.lock"}


def engine(locks: dict[str, str] = LOCKS, drivers: dict[str, str] | None = None) -> EngineFolder:
    drivers = {"cu12": "525", "cu13": "580"} if drivers is None else drivers
    manifest = Manifest.model_validate(
        {
            "name": "toy",
            "stage": "tts",
            "protocol": "wyoming",
            "licence": "MIT",
            "summary_en": "-",
            "summary_ko": "-",
            "launch": {"command": ["x"]},
            "environment": {"locks": locks, "drivers": drivers},
            "capabilities": {"languages": ["en"]},
            "needs": {"memory_mib": 1},
            "limits": {"busy_after_cancel_ms": 1},
        }
    )
    return EngineFolder(Path("/engines/toy"), manifest)


def with_driver(driver: str) -> Sight:
    return Sight((Card("A card", driver, "8.9", 1, 1, 0, None, None),))


@pytest.mark.parametrize(
    ("driver", "variants"),
    [
        ("580.65.06", ["cu13", "cu12"]),
        ("579.99", ["cu12"]),
        ("570.124", ["cu12"]),
        ("525", ["cu12"]),
        ("470.82.01", []),
        ("1000.1", ["cu13", "cu12"]),
        ("", []),
        (None, []),
    ],
)
def test_a_driver_runs_what_asks_no_more_of_it(driver: str | None, variants: list[str]) -> None:
    assert runnable(engine().manifest.environment, driver) == variants


def test_what_a_manifest_does_not_say_is_what_its_cuda_needs() -> None:
    environment = engine(drivers={}).manifest.environment
    assert runnable(environment, "580.1") == ["cu13", "cu12"]
    assert runnable(environment, "550.1") == ["cu12"]


def test_the_newest_variant_that_the_driver_runs_is_taken_where_no_plan_names_one() -> None:
    assert variant_for(engine(), "580.65.06") == "cu13"
    assert variant_for(engine(), "570.10") == "cu12"
    assert variant_for(engine(), "470.10") == variant_for(engine()) == "cpu"


def test_a_driver_that_is_too_old_is_told_with_the_one_that_is_needed() -> None:
    with pytest.raises(EngineError) as raised:
        gate(engine(), "cu13", lambda: with_driver("570.124"))
    told = raised.value.message("en")
    assert "needs NVIDIA's driver 580 or newer; this machine has 570.124" in told.text
    assert told.next == (
        "Update NVIDIA's driver to 580 or newer, or type: ondam engines build toy --variant cu12."
    )
    assert "580 이상" in raised.value.message("ko").text


def test_without_a_driver_its_trouble_is_told() -> None:
    with pytest.raises(EngineError) as raised:
        gate(engine({"cu13": "13.lock"}), "cu13", lambda: Sight(trouble=Phrase("gpu_driver_mismatch")))
    told = raised.value.message("en")
    assert "Driver/library version mismatch" in told.text and "580" in told.text
    assert "--variant" not in told.next


def test_a_driver_that_is_new_enough_passes_and_a_variant_without_need_asks_nobody() -> None:
    gate(engine(), "cu13", lambda: with_driver("580.65.06"))

    def nobody() -> Sight:
        raise AssertionError("the driver was asked")

    gate(engine(), "cpu", nobody)


def test_a_stamp_from_before_there_were_variants_is_of_the_only_one_there_was(tmp_path: Path) -> None:
    (tmp_path / "ondam-stamp.json").write_text('{"packages": "p", "source": "s"}')
    assert Stamp.read(tmp_path) == Stamp("p", "s", "cpu")
