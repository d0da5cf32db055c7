"""Who is told what when engines are switched or settings change; whole, it is in test_assistant_settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.fakes.engine.rig import engine_folder

from ondam.config import load
from ondam.house.floor import Floor
from ondam.places import Places

CONFIG = load(None, {"language": "en"})


class Anybody:
    """Somebody on the floor: notes what they are told. Whatever they are asked, they know nothing."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name, self._notes = name, notes

    def __getattr__(self, what: str) -> Any:
        return lambda *told: self._notes.append(f"{self._name}.{what}")


def floor(notes: list[str], **there: Any) -> Floor:
    somebody = {
        name: Anybody(name, notes)
        for name in (
            *("engines", "faults", "sound", "sessions", "room", "wav_turns", "remembering", "preparing"),
            "recorder",
        )
    }
    given: dict[str, Any] = {"folders": {}, "fleet": fleet(), **somebody, **there}
    return Floor(config=CONFIG, places=Places(*[Path("/nowhere")] * 4), publish=lambda event: None, **given)


def fleet(**engines: str) -> Any:
    """Serving ``stage=NAME``."""
    serving = {stage: SimpleNamespace(name=name, stage=stage, model="") for stage, name in engines.items()}
    crew = SimpleNamespace(engine=serving.get, switching=frozenset())
    return cast(Any, SimpleNamespace(crew=crew, engine=serving.get, status=lambda: list(serving.values())))


def test_another_configuration_reaches_everybody_who_goes_by_one_and_the_same_again_nobody() -> None:
    notes: list[str] = []
    it = floor(notes)
    it.take_over(CONFIG)
    assert notes == []
    korean = load(None, {"language": "ko"})
    it.take_over(korean)
    assert it.config is korean
    assert (it.language, it.faults.language) == ("ko", "ko")
    told = {note.partition(".")[0] for note in notes if note.endswith(".configure")}
    assert told == {"engines", "sound", "sessions", "room", "wav_turns", "remembering", "preparing"}


def test_a_voice_that_was_switched_says_its_phrases_anew_once_it_serves() -> None:
    notes: list[str] = []
    floor(notes, fleet=fleet(tts="piper")).switched(CONFIG, frozenset({"tts"}))
    assert "preparing.another_voice" in notes
    notes.clear()
    floor(notes, fleet=fleet()).switched(CONFIG, frozenset({"tts"}))  # nobody serves meanwhile
    floor(notes, fleet=fleet(tts="piper")).switched(CONFIG, frozenset({"llm"}))
    assert "preparing.another_voice" not in notes
    assert notes.count("sessions.engines_switched") == 2


async def test_another_prompt_is_computed_by_the_engine_that_there_is() -> None:
    notes: list[str] = []
    key = "llm.system_prompt_en"
    await floor(notes, fleet=fleet(llm="llama")).adjusted(CONFIG, [key], None)
    assert notes == ["preparing.compute_prompt"]
    notes.clear()
    await floor(notes, fleet=fleet()).adjusted(CONFIG, [key], None)
    await floor(notes, fleet=fleet(llm="llama")).adjusted(CONFIG, ["llm.max_tokens"], None)
    assert notes == []


async def test_everybody_is_told_which_settings_are_otherwise_and_of_a_mode_alone_nothing() -> None:
    events: list[Any] = []
    it = floor([])
    it.publish = events.append
    await it.adjusted(CONFIG, ["llm.max_tokens", "detect.threshold"], None)
    await it.adjusted(CONFIG, [], None)
    assert events == [{"type": "settings", "keys": ["detect.threshold", "llm.max_tokens"]}]


@pytest.mark.parametrize(("language", "heard"), [("en", True), ("ko", False)])
def test_a_recognizer_hears_the_languages_of_its_manifest(language: Any, heard: bool) -> None:
    folder = engine_folder("stt", "ears")
    known = folder.manifest.capabilities.model_copy(update={"languages": ("en",)})
    manifest = folder.manifest.model_copy(update={"capabilities": known})
    folders = {"ears": SimpleNamespace(manifest=manifest)}
    it = floor([], fleet=fleet(stt="ears"), folders=folders)
    assert it.hears(language) is heard
    assert it.stages_of("ears") == {"stt"}
    elsewhere = floor([], fleet=fleet(stt="by address"), folders=folders)
    assert elsewhere.hears(language)  # it is taken at its word
