"""Inputs that once broke something: each is refused in words, with nothing lost."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ondam.audio import read_wav
from ondam.cli.spec import read_spec
from ondam.config import load
from ondam.control.sound import decode
from ondam.errors import AudioError, ConfigError, ControlError
from ondam.journal.keep import Keep
from ondam.journal.recorder import Recorder
from ondam.journal.turn import Turn
from ondam.types import TurnId


def wav(rate_hz: int) -> bytes:
    data = b"\x10\x20" * 100
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate_hz, 2, 2, 16
    )
    return head + struct.pack("<4sI", b"data", len(data)) + data


@pytest.mark.parametrize("rate_hz", [1, 0x7FFF_FFFF])
def test_a_rate_that_no_sound_has_is_refused(tmp_path: Path, rate_hz: int) -> None:
    with pytest.raises(ControlError):
        decode(wav(rate_hz), 10**6)
    file = tmp_path / "odd.wav"
    file.write_bytes(wav(rate_hz))
    with pytest.raises(AudioError):
        read_wav(file)


def test_a_link_that_leads_nowhere_is_no_missing_configuration(tmp_path: Path) -> None:
    link = tmp_path / "config.toml"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError):
        load(link)


@pytest.mark.parametrize("text", ["a=" + "[" * 5000, "[audio]\ntail_ms=" + "1" * 5000])
def test_toml_that_the_parser_cannot_hold_is_told_with_its_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert raised.value.code == "toml_broken"


def test_a_wrong_value_is_shown_shortened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, {"llm": {"temperature": "x" * 30_000}})
    assert len(str(raised.value)) < 400


def test_a_date_out_of_range_is_refused_and_never_stops_the_journal(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load(None, {"journal": {"keep_days": 36_500_000}})
    recorder = Recorder(tmp_path / "journal.sqlite", Keep(36_500_000))
    for number in (1, 2):
        turn = Turn(TurnId(number), "s", datetime.now(UTC))
        recorder.record(turn, turn.as_json())
    recorder.close(5)
    assert (recorder.written, recorder.lost) == (2, 0)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ('[{"text":"a","file":"x.wav"},{"text":"b","file":"x.wav"}]', "cli_spec_twice"),
        ('[{"text":"a","file":"002.wav"},{"text":"b"}]', "cli_spec_twice"),
        ('[{"text":"a","file":"a\\u0000.wav"}]', "cli_spec_no_name"),
        ('[{"text":"a","file":"sub/"}]', "cli_spec_no_name"),
    ],
)
def test_a_list_of_texts_is_checked_whole_before_anything_is_spoken(
    tmp_path: Path, spec: str, code: str
) -> None:
    file = tmp_path / "many.json"
    file.write_text(spec)
    with pytest.raises(ConfigError) as raised:
        read_spec(file)
    assert raised.value.code == code
