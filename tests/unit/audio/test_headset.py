"""Names that say: nobody else hears this."""

from __future__ import annotations

import pytest

from ondam.audio.duplex import wanted
from ondam.audio.headset import is_headset


@pytest.mark.parametrize(
    "name",
    [
        "Jabra Evolve 65 Headset Mono",
        "USB Headphones Analog Stereo",
        "AirPods Pro",
        "Galaxy Buds2 Pro",
        "bluez_output.headset-head-unit",
        "WH-1000XM4 (HSP)",
        "Sony Hands-Free",
        "홍길동의 에어팟",
        "삼성 이어폰",
        "블루투스 헤드셋",
        "헤드폰",
    ],
)
def test_headsets_are_known_by_name(name: str) -> None:
    assert is_headset(name)
    assert not wanted("auto", name)
    assert wanted("on", name)


@pytest.mark.parametrize(
    "name",
    [
        "Built-in Audio Analog Stereo",
        "HDMI 2",
        "Creative Pebble",
        "JBL Flip 5",
        "내장 스피커",
        "speaker",
        "",
        "hspa",
    ],
)
def test_others_are_speakers(name: str) -> None:
    assert not is_headset(name)
    assert wanted("auto", name)
    assert not wanted("off", name)
