from __future__ import annotations

from pathlib import Path

import pytest

from ondam.messages import Phrase
from ondam.planner.facts import Gpu
from ondam.planner.gate import Gate, gate, plain
from ondam.supervisor.manifest import Manifest, engine_roots, find_engines


def manifest(*locks: str, **drivers: str) -> Manifest:
    return Manifest.model_validate(
        {
            "name": "ex",
            "stage": "llm",
            "protocol": "openai",
            "licence": "MIT",
            "summary_en": "-",
            "summary_ko": "-",
            "launch": {"command": ["x"]},
            "environment": {"locks": {lock: f"{lock}.lock" for lock in locks}, "drivers": drivers},
            "capabilities": {"languages": ["ko", "en"]},
            "needs": {"devices": ["cuda"], "memory_mib": 1},
            "limits": {"busy_after_cancel_ms": 1},
        }
    )


def card(driver: str | None, capability: str | None = "8.9") -> Gpu:
    return Gpu("a card", 24.0, 24.0, driver, capability)


@pytest.mark.parametrize(
    ("driver", "variant"), [("580.65.06", "cu13"), ("590", "cu13"), ("570.124", "cu128"), ("525.60", "cu12")]
)
def test_the_newest_set_that_the_driver_runs_is_taken(driver: str, variant: str) -> None:
    found = gate(manifest("cpu", "cu12", "cu13", "cu128"), "cuda", card(driver), None, "linux")
    assert isinstance(found, Gate)
    assert found.variant == variant
    assert (found.note is None) == (variant == "cu13")


def test_an_older_set_is_said_to_be_one() -> None:
    found = gate(manifest("cpu", "cu12", "cu13"), "cuda", card("550.54"), None, "linux")
    assert isinstance(found, Gate)
    assert str(found.note) == (
        "driver 550.54 is too old for the newest set of packages (cu13 needs 580): cu12 is used"
    )


@pytest.mark.parametrize("driver", ["570.1", "550.2", "470.3"])
def test_a_driver_that_is_too_old_is_refused_with_the_one_that_is_needed(driver: str) -> None:
    found = gate(manifest("cu13", cu13="580"), "cuda", card(driver), None, "linux")
    assert str(found) == f"ex needs NVIDIA's driver 580 or newer; {driver} is installed"


def test_the_manifests_word_on_drivers_counts() -> None:
    found = gate(manifest("cu13", cu13="595"), "cuda", card("580.1"), None, "linux")
    assert isinstance(found, Phrase) and found.facts["needed"] == 595


def test_what_is_compiled_here_needs_a_driver_of_cuda_12() -> None:
    assert gate(manifest("cpu"), "cuda", card("525.1", "6.1"), None, "linux") == Gate("cpu")
    found = gate(manifest("cpu"), "cuda", card("470.1", "6.1"), None, "linux")
    assert isinstance(found, Phrase) and found.facts["needed"] == 525


def test_cuda_13_has_left_old_cards_behind() -> None:
    assert isinstance(gate(manifest("cu13"), "cuda", card("580.1", "7.0"), None, "linux"), Phrase)
    found = gate(manifest("cu12", "cu13"), "cuda", card("580.1", "6.1"), None, "linux")
    assert found == Gate("cu12")


def test_a_card_without_a_driver_is_told() -> None:
    found = gate(manifest("cu13"), "cuda", card(None), None, "linux")
    assert isinstance(found, Phrase) and found.code == "plan_driver_missing"


def test_apple_and_vulkan_ask_for_no_driver() -> None:
    assert gate(manifest("cpu", "macos"), "metal", None, None, "darwin") == Gate("macos")
    assert gate(manifest("cpu"), "vulkan", card(None, None), None, "linux") == Gate("cpu")


def test_llama_cpp_is_built_for_the_device_that_it_computes_on(tmp_path: Path) -> None:
    manifest = find_engines(engine_roots(tmp_path))["llama_cpp"].manifest
    assert gate(manifest, "cuda", card("525.1", "6.1"), None, "linux") == Gate("cuda")
    assert gate(manifest, "vulkan", card(None, None), None, "linux") == Gate("vulkan")
    assert gate(manifest, "metal", None, None, "darwin") == Gate("cpu")
    assert plain(manifest, "cpu", "linux") == Gate("cpu")
    found = gate(manifest, "cuda", card("470.1", "6.1"), None, "linux")
    assert isinstance(found, Phrase) and found.facts["needed"] == 525


def test_on_the_processor_the_platforms_own_set_is_taken() -> None:
    assert plain(manifest("cpu", "cu13", "macos"), "cpu", "darwin") == Gate("macos")
    assert plain(manifest("cpu", "cu13", "macos"), "cpu", "linux") == Gate("cpu")
