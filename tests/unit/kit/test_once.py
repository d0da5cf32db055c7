from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.kit.models import ScriptedStt, ScriptedTts

from ondam_engines.kit.launch import Launch
from ondam_engines.kit.once import once


def launch(language: str = "en") -> Launch:
    return Launch(Path("/s"), Path("/r"), None, "m", "cpu", 1, language)


def test_what_is_heard_and_how_long_it_took() -> None:
    told = once(lambda given: ScriptedStt(), launch(), b"\0\0" * 50)
    assert told["text"] == "100 en "
    assert isinstance(told["load_ms"], float)
    assert isinstance(told["engine_ms"], float)


def test_how_much_was_said_in_the_voice_of_the_language() -> None:
    voice = ScriptedTts()
    told = once(lambda given: voice, launch("ko"), "안녕".encode())
    assert voice.asked == [("안녕", "Yuna")]
    assert told["audio_s"] == 2 / 16_000


def test_a_voice_that_does_not_know_the_language_says_so() -> None:
    with pytest.raises(ValueError, match="fr"):
        once(lambda given: ScriptedTts(), launch("fr"), b"")
