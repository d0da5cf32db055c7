"""What differs between two sets of conditions, as a person reads it."""

from __future__ import annotations

from ondam.cli.differences import differences


def test_what_one_side_lacks_is_a_dash_and_lists_and_hashes_are_no_program_text() -> None:
    shown = differences(
        [
            {"key": "tts.dtype", "a": None, "b": "float32"},
            {"key": "tts.providers.voice", "a": ["CUDA", "CPU"], "b": []},
            {"key": "tts.sha256", "a": "58afce0321b8" + 52 * "0", "b": None},
            {"key": "thinking", "a": True, "b": False},
        ]
    )
    assert [line.split() for line in shown] == [
        ["tts.dtype", "–", "≠", "float32"],
        ["tts.providers.voice", "CUDA,", "CPU", "≠", "–"],
        ["tts.sha256", "sha256", "58afce0321b8", "≠", "–"],
        ["thinking", "on", "≠", "off"],
    ]
