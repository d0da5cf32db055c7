from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import ondam_engines
from ondam_engines.supertonic.settings import Settings

MANIFEST = Path(next(iter(ondam_engines.__path__))) / "supertonic" / "engine.toml"
OPTIONS: dict[str, Any] = tomllib.loads(MANIFEST.read_text("utf-8"))["options"]


def test_the_manifest_s_own_are_allowed_everywhere() -> None:
    for device in ("cpu", "cuda:0"):
        assert Settings.of(OPTIONS, device).steps == 8


def test_on_a_card_the_sessions_are_tensorrt_s_unless_cuda_is_asked_for() -> None:
    assert Settings.of(OPTIONS, "cuda:1").opens("cuda:1") == "tensorrt:1"
    assert Settings.of(OPTIONS, "cpu").opens("cpu") == "cpu"
    assert Settings.of(OPTIONS | {"provider": "cuda"}, "cuda:1").opens("cuda:1") == "cuda:1"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"steps": 0}, "engines.supertonic.steps may be 1 to 100, not 0"),
        ({"steps": 101}, "not 101"),
        ({"speed": 0.5}, "engines.supertonic.speed may be 0.7 to 2.0, not 0.5"),
        ({"pause_s": -1}, "pause_s"),
        ({"seed": -1}, "seed"),
        ({"provider": "magic"}, "tensorrt or cuda, not 'magic'"),
        ({"dtype": "int8"}, "float32 or float16"),
        ({"dtype": "float16"}, "float16 is for TensorRT"),
    ],
)
def test_a_wrong_option_is_told_with_what_is_allowed(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Settings.of(OPTIONS | wrong, "cpu")
