"""The icons: all there, and none like another at 16 pixels without colour."""

from __future__ import annotations

import itertools
import struct
import zlib
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest

from ondam_ui.tray.menu import Icon

ICONS = Path(__file__).parents[3] / "ui/ondam_ui/tray/icons"
SIZES = (16, 22, 24, 32, 48)


def ink(path: Path) -> npt.NDArray[np.uint8]:
    """How much of each pixel is drawn, shape (height, width), of a PNG with 8-bit RGBA as rsvg writes it."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    width = height = 0
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 6)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw = zlib.decompress(packed)
    rows = np.zeros((height, width * 4), np.uint8)
    before = bytearray(width * 4)
    for y in range(height):
        begin = y * (width * 4 + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + width * 4])
        for x in range(len(line)):
            left, above = (line[x - 4] if x >= 4 else 0), before[x]
            corner = before[x - 4] if x >= 4 else 0
            line[x] = (line[x] + predicted(raw[begin], left, above, corner)) & 255
        rows[y], before = line, line
    return rows.reshape(height, width, 4)[:, :, 3]


def predicted(kind: int, left: int, above: int, corner: int) -> int:
    """PNG's five filters (RFC 2083, 6)."""
    near = min((left, above, corner), key=lambda value: abs(left + above - corner - value))
    return (0, left, above, (left + above) // 2, near)[kind]


@pytest.mark.parametrize("name", get_args(Icon))
def test_every_state_is_drawn_in_both_inks_and_all_sizes(name: str) -> None:
    assert (ICONS / f"{name}.svg").exists()
    for size in SIZES:
        drawn = [
            ink(ICONS / f"hicolor/{size}x{size}/status/ondam-{name}-{kind}.png") for kind in ("light", "dark")
        ]
        assert drawn[0].shape == (size, size)
        assert np.array_equal(drawn[0], drawn[1]), "the same shape, whatever its ink"


def test_no_two_states_look_alike_at_16_pixels_without_colour() -> None:
    drawn = {
        name: ink(ICONS / f"hicolor/16x16/status/ondam-{name}-dark.png") / 255.0 for name in get_args(Icon)
    }
    for one, other in itertools.combinations(drawn, 2):
        a, b = drawn[one], drawn[other]
        differing = np.abs(a - b).sum() / np.maximum(a, b).sum()
        assert differing > 0.35, (one, other, differing)


def test_there_is_no_picture_of_a_state_that_does_not_exist() -> None:
    assert {path.stem for path in ICONS.glob("*.svg")} == set(get_args(Icon))
    wanted = len(get_args(Icon)) * 2 * len(SIZES)
    assert len(list(ICONS.rglob("*.png"))) == wanted
