from __future__ import annotations

import re
from pathlib import Path

import pytest

import ondam.audio
from ondam import messages
from ondam.audio.faults import LOST, NOTICES
from ondam.types import Language

SOURCES = "\n".join(file.read_text("utf-8") for file in Path(ondam.audio.__file__).parent.glob("*.py"))
PLAIN = set(re.findall(r'(?:AudioError|tell)\(\s*"(\w+)"', SOURCES))
ENDINGS = set(re.findall(r'f"\{self\._kind\}_(\w+)"', SOURCES))
CODES = PLAIN | {f"{kind}_{ending}" for kind in ("microphone", "speaker") for ending in ENDINGS}
FACTS = {"rate": 1, "name": "USB", "path": "/a.wav", "reason": "busy", "start": "<html>"}


def test_the_search_for_codes_finds_them() -> None:
    assert {"microphone_lost", "speaker_stalled", "microphone_silent", "portaudio_missing"} <= CODES


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize("code", sorted(CODES))
def test_every_fault_that_can_be_told_has_a_text(code: str, language: Language) -> None:
    message = messages.message(code, language, **FACTS)
    assert message.text
    assert "{" not in message.text + message.next


def test_every_fault_of_a_device_either_means_that_it_is_lost_or_is_a_mere_notice() -> None:
    of_devices = {code for code in CODES if not code.startswith(("sound_file_", "doctor_"))}
    assert of_devices == LOST | NOTICES
    assert not LOST & NOTICES
