"""What may be changed while the daemon runs, as a tray or a panel is told it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ondam.audio.devices import Device
from ondam.config import load
from ondam.config.keys import counts
from ondam.control import wire
from ondam.errors import ConfigError
from ondam.house.settings import Around, refuse_others, settings
from ondam.messages import catalog
from ondam.types import Language

DEVICES = (
    Device("microphone", "alsa.builtin", "Built-in", "server", default=True),
    Device("microphone", "alsa.headset", "Bora's headset", "server"),
    Device("microphone", "alsa.builtin.monitor", "Monitor", "server", monitor=True),
    Device("speaker", "alsa.hdmi", "HDMI", "server", default=True),
)

AROUND = Around("open", DEVICES, ("piper", "espeak"), ("joe", "amy"), ("piper", 1.0))


def described(
    language: Language = "en", kept: Any = None, around: Around = AROUND, **overrides: Any
) -> dict[str, wire.Setting]:
    config = load(None, overrides)
    told = settings(config, load(None) if kept is None else kept, around, language)
    assert len({one["key"] for one in told}) == len(told)
    return {one["key"]: one for one in told}


def values(setting: wire.Setting) -> list[object]:
    return [choice["value"] for choice in setting["choices"]]


def test_nothing_that_needs_a_restart_is_offered() -> None:
    assert [key for key in described() if counts(key) == "restart"] == []


@pytest.mark.parametrize("language", ["ko", "en"])
def test_everything_has_words_in_the_readers_language(language: Language) -> None:
    for setting in described(language).values():
        assert setting["label"] and setting["help"]
        assert all(choice["label"] for choice in setting.get("choices", []))
    codes = [code for code in catalog() if code.startswith("setting_")]
    assert len(codes) > 30


def test_a_mode_is_the_one_in_force_and_kept_only_if_the_file_says_the_same() -> None:
    mode = described(around=replace(AROUND, mode="muted"))["listen.mode"]
    assert (mode["value"], mode["kind"], mode["kept"]) == ("muted", "choice", False)
    assert values(mode) == ["open", "name", "push", "muted"]
    assert described()["listen.mode"]["kept"]


def test_devices_are_named_as_the_configuration_names_them() -> None:
    found = described()
    assert values(found["audio.microphone"]) == ["default", "alsa.builtin", "alsa.headset"]
    labels = [choice["label"] for choice in found["audio.microphone"]["choices"]]
    assert labels == ["the system's default", "Built-in", "Bora's headset"]
    assert values(found["audio.speaker"]) == ["default", "alsa.hdmi"]


def test_a_device_that_is_configured_by_a_part_of_its_name_is_among_the_choices() -> None:
    microphone = described(audio={"microphone": "headset"})["audio.microphone"]
    assert microphone["value"] == "headset"
    assert values(microphone) == ["default", "alsa.builtin", "headset"]


def test_a_device_that_was_unplugged_is_still_what_was_chosen() -> None:
    speaker = described(audio={"speaker": "usb"})["audio.speaker"]
    assert speaker["value"] == "usb"
    assert values(speaker) == ["default", "alsa.hdmi", "usb"]


def test_numbers_have_the_schemas_limits() -> None:
    tokens = described()["llm.max_tokens"]
    assert (tokens["least"], tokens["most"], tokens["whole"], tokens["value"]) == (1, 8192, True, 64)
    days = described()["journal.keep_days"]
    assert (days["least"], days["most"]) == (1, 36_500)


def test_the_pace_is_of_the_voice_that_speaks_and_its_own_where_nothing_is_set() -> None:
    speed = described()["engines.piper.speed"]
    assert (speed["value"], speed["least"], speed["most"], speed["whole"]) == (1.0, 0.5, 2.0, False)
    assert speed["kept"]
    speed = described(engines={"piper": {"speed": 1.3}})["engines.piper.speed"]
    assert (speed["value"], speed["kept"]) == (1.3, False)
    assert not [key for key in described(around=replace(AROUND, speed_of=None)) if key.endswith("speed")]


def test_voices_are_offered_where_there_are_any_to_choose_from() -> None:
    assert values(described()["tts.engine"]) == ["auto", "piper", "espeak"]
    assert values(described()["tts.model"]) == ["auto", "joe", "amy"]
    assert "tts.model" not in described(around=replace(AROUND, models=("joe",)))
    assert "tts.engine" not in described(tts={"address": "tcp://box:10200"})


def test_a_file_that_is_broken_keeps_nothing() -> None:
    assert not any(one["kept"] for one in settings(load(None), None, AROUND, "en"))


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"llm.url": "http://evil"}, "llm.url: cannot be changed while Ondam runs"),
        ({"metrics.listen": "0.0.0.0:1"}, "metrics.listen: cannot be changed while Ondam runs"),
        ({"audio.speaker": "wav:/etc/passwd"}, 'audio.speaker: there is no device "wav:/etc/passwd"'),
        (
            {"audio.microphone": "none"},
            'audio.microphone: there is no device "none"; there are: default, alsa.b',
        ),
        ({"audio.microphone": 3}, 'audio.microphone: there is no device "3"'),
        ({"engines.piper.speed": 3}, "engines.piper.speed: from 0.5 to 2 is wanted (found 3)"),
        ({"engines.piper.speed": True}, "engines.piper.speed: from 0.5 to 2 is wanted (found True)"),
        (
            {"tts.engine": "qwen_tts"},
            "tts.engine: there is no 'qwen_tts' here; there are: auto, piper, espeak",
        ),
        ({"tts.model": "joe", "x": 1}, "x: cannot be changed"),
    ],
)
def test_whatever_else_is_refused_with_what_there_is(wanted: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_others(wanted, load(None), AROUND)
    assert problem in str(caught.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_others({"llm.url": "x", "audio.speaker": "y"}, load(None), AROUND)
    assert len(str(caught.value).splitlines()) == 3


def test_what_is_offered_is_accepted() -> None:
    for setting in described().values():
        for value in values(setting) if "choices" in setting else [setting["value"]]:
            refuse_others({setting["key"]: value}, load(None), AROUND)
    # Also what is configured now, whatever it is.
    refuse_others({"audio.speaker": "none"}, load(None, {"audio": {"speaker": "none"}}), AROUND)
