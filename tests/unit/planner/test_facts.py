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


@pytest.mark.parametrize("value", [[], None, 3, "x"])
def test_what_is_no_object_describes_no_machine(value: object) -> None:
    assert told(value) == "facts.json describes no machine: it should be a JSON object."


@pytest.mark.parametrize("value", [{}, {"cpu": 3}, {**MACHINE, "ram_gib": float("nan")}])
def test_what_is_no_machine_is_refused_without_a_traceback(value: object) -> None:
    assert told(value).startswith("facts.json cannot be used:")


def card_told(**wrong: Any) -> str:
    return told({**MACHINE, "gpus": [{"name": "g", "vram_gib": 8, **wrong}]})


@pytest.mark.parametrize("driver", ["new", "N/A", "[N/A]", "", True, "99999.1", "５８０", ["580"]])
def test_a_driver_that_is_no_number_is_refused_with_how_it_is_written(driver: object) -> None:
    text = card_told(driver=driver)
    assert 'gpus[0].driver: is written as nvidia-smi shows it, "580.65.06"' in text


@pytest.mark.parametrize(
    ("written", "meant"),
    [("8.9", (8, 9)), (8.9, (8, 9)), ([8, 9], (8, 9)), (9, (9, 0)), ("12.0", (12, 0)), ([10, 3], (10, 3))],
)
def test_a_capability_is_read_in_each_way_in_which_it_is_told(
    written: object, meant: tuple[int, int]
) -> None:
    found = facts(gpus=[{"name": "g", "vram_gib": 8, "driver": 580, "compute_capability": written}])
    assert found.gpus[0].capability == meant


@pytest.mark.parametrize(
    "written",
    ["N/A", "sm_89", "8,9", 89, "8.9.1", -8.9, True, {"major": 8}, [8, 9, 0], [8, True], "８.９", "8.90"],
)
def test_a_capability_that_is_none_is_refused_with_how_it_is_written(written: object) -> None:
    assert 'gpus[0].compute_capability: is written as "8.9", 8.9 or [8, 9]' in card_told(
        compute_capability=written
    )


@pytest.mark.parametrize("name", ["", "\x1b[31mred", "two\nlines", "\ud800", "x" * 201])
def test_a_name_that_would_spoil_the_screen_is_refused(name: str) -> None:
    assert "gpus[0].name: " in card_told(name=name)


@pytest.mark.parametrize(
    ("key", "value"), [("os", "templeos"), ("os", " "), ("arch", "riscv64"), ("arch", "")]
)
def test_a_system_or_processor_without_engines_is_told_with_those_there_are(key: str, value: str) -> None:
    text = told({**MACHINE, key: value})
    assert f"{key}: is a " in text and {"os": "linux, macos", "arch": "x86_64 and aarch64"}[key] in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"ram_gib": "64"}, {"ram_gib": -3}, {"ram_gib": None}, {"ram_gib": 10**400},
        {"ram_gib": float("inf")},
        {"cpu": {"cores": 8.5}}, {"cpu": {"cores": "8"}}, {"cpu": {"cores": 5000}}, {"gpus": None},
        {"gpus": ["RTX 4090"]}, {"on_battery": "yes"}, {"disk_free_gib": -1}, {"memory_gb_s": 0},
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_told_with_its_key_and_not_converted(wrong: dict[str, Any]) -> None:
    assert told({**MACHINE, **wrong}).splitlines()[1].lstrip().startswith(next(iter(wrong)))
