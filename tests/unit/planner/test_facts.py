from __future__ import annotations

from typing import Any

import pytest

from ondam.errors import ConfigError
from ondam.planner.facts import Facts, Gpu

MACHINE: dict[str, Any] = {
    "os": "linux",
    "arch": "x86_64",
    "cpu": {"cores": 16, "flags": ["avx2"]},
    "ram_gib": 64,
    "memory_gb_s": 80.0,
    "disk_free_gib": 500,
    "on_battery": False,
    "gpus": [
        {
            "name": "NVIDIA GeForce RTX 4090",
            "vram_gib": 24,
            "free_gib": 23.5,
            "driver": "580.65.06",
            "compute_capability": "8.9",
            "bandwidth_gb_s": 1008,
        }
    ],
}


def facts(**changed: Any) -> Facts:
    return Facts.from_json({**MACHINE, **changed}, "facts.json")


def told(value: object) -> str:
    with pytest.raises(ConfigError) as raised:
        Facts.from_json(value, "facts.json")
    return str(raised.value)


def test_the_shape_of_the_documentation_is_read() -> None:
    found = facts()
    assert (found.cores, found.memory_mib, found.memory_gb_s, found.system) == (16, 65536, 80.0, "linux")
    assert found.gpus == (Gpu("NVIDIA GeForce RTX 4090", 24.0, 23.5, "580.65.06", "8.9", 1008.0),)
    assert (found.gpus[0].driver_major, found.gpus[0].capability) == (580, (8, 9))


def test_what_is_written_is_read_again_as_it_was() -> None:
    assert Facts.from_json(facts().as_json(), "facts.json") == facts()


def test_numbers_and_other_names_of_systems_are_understood() -> None:
    gpu = {"name": "g", "vram_gib": 8, "neighbours_gib": 2, "driver": 570, "compute_capability": 12.0}
    found = facts(os="macOS", arch="arm64", gpus=[gpu])
    assert (found.system, found.machine, found.metal) == ("darwin", "aarch64", True)
    assert (found.gpus[0].free_gib, found.gpus[0].driver, found.gpus[0].capability) == (6, "570", (12, 0))


def test_a_capability_of_10_is_more_than_8_9() -> None:
    assert (Gpu("g", 1, 1, None, "10.0").capability or (0, 0)) > (8, 9)


def test_every_problem_is_told_at_once_with_its_key() -> None:
    text = told(
        {**MACHINE, "ram_gb": 3, "cpu": {"cores": 0}, "gpus": [{"name": "g", "vram_gib": 8, "free_gib": 9}]}
    )
    assert 'ram_gb: unknown key; did you mean "ram_gib"?' in text
    assert "cpu.cores: input should be greater than or equal to 1 (found 0)" in text
    assert "gpus[0]: a card cannot have more free or used memory than vram_gib" in text


@pytest.mark.parametrize("value", [[], None, 3, "x", {}, {"cpu": 3}, {**MACHINE, "ram_gib": float("nan")}])
def test_what_is_no_machine_is_refused_without_a_traceback(value: object) -> None:
    assert told(value).startswith("facts.json cannot be used:")


def test_a_driver_that_is_no_number_is_refused() -> None:
    text = told({**MACHINE, "gpus": [{"name": "g", "vram_gib": 8, "driver": "new"}]})
    assert "gpus[0].driver" in text
