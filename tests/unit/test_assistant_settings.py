"""Settings, devices, levels and diagnostics in the daemon, on scripted engines and in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.test_assistant_modes import Table, table

from ondam import assistant as module
from ondam.audio.devices import Device
from ondam.config import Config, load
from ondam.control import wire
from ondam.errors import AudioError, ConfigError
from ondam.house import sound

MICROPHONES = (
    Device("microphone", "alsa.builtin", "Built-in", "server", default=True),
    Device("microphone", "alsa.headset", "Headset", "server"),
    Device("speaker", "alsa.hdmi", "HDMI", "server", default=True),
    Device("speaker", "alsa.box", "Box", "server"),
)


@asynccontextmanager
async def room(file: Path | None = None, **listen: Any) -> AsyncIterator[Table]:
    """A table with devices to choose from, and a file where there is one."""

    async def devices() -> tuple[Device, ...]:
        return MICROPHONES

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(module, "list_devices", devices)
        async with table(monkeypatch, **listen) as t:
            cast(Any, t.assistant._fleet).engine = lambda stage: SimpleNamespace(name="scripted", model="")
            if file is not None:
                t.assistant._adjusting.config_file = file
                t.assistant._adjusting.read = lambda: load(file, {"language": "en"})
                t.assistant._read = t.assistant._adjusting.read
            yield t


async def gathered(events: AsyncIterator[wire.Event]) -> list[wire.Event]:
    return [event async for event in events]


async def setting(t: Table, key: str) -> wire.Setting:
    found = (await t.assistant.settings("en"))["settings"]
    return next(one for one in found if one["key"] == key)


@virtual_time
async def test_a_setting_counts_from_the_next_turn_on() -> None:
    async with room() as t:
        await t.assistant.set_settings({"llm.max_tokens": 9}, False, "en")
        assert (await setting(t, "llm.max_tokens"))["value"] == 9
        session = t.assistant._room.conversation()
        assert session._config.llm.max_tokens == 9
        await t.hears("What time is it?")
    assert t.outcomes == ["answered"]


@virtual_time
async def test_an_answer_goes_on_while_settings_change() -> None:
    async with room() as t:
        t.engines.tokens = ("It ", "is ", "three ", "in ", "the ", "morning, ", "good ", "friend. ") * 3
        await t.hears("What time is it?", then_s=2.5)
        assert t.assistant.status()["state"] == "speaking"
        await t.assistant.set_settings({"llm.max_tokens": 9, "journal.keep_days": 5}, False, "en")
        assert t.assistant.status()["state"] == "speaking"
        await asyncio.sleep(20)
    assert t.outcomes == ["answered"]


@virtual_time
async def test_privacy_counts_for_the_very_next_turn() -> None:
    async with room() as t:
        assert not t.assistant.config.journal.keep_text
        await t.assistant.set_settings({"journal.keep_text": True, "journal.text_days": 3}, False, "en")
        keep = t.assistant._recorder.keep
        assert (keep.text, keep.text_days) == (True, 3)
        await t.assistant.set_settings({"journal.keep_text": False}, False, "en")
        assert not t.assistant._recorder.keep.text


@virtual_time
async def test_a_mode_through_the_settings_is_a_mode() -> None:
    async with room() as t:
        told = await t.assistant.set_settings({"listen.mode": "muted"}, False, "en")
        assert told["settings"][0]["value"] == "muted"
        assert t.open == []
        await t.assistant.set_settings({"listen.mode": "open"}, False, "en")
        await t.hears("What time is it?")
    assert t.outcomes == ["answered"]


@virtual_time
async def test_everybody_is_told_that_something_was_changed() -> None:
    async with room() as t, t.assistant.subscribe() as events:
        await t.assistant.set_settings({"llm.max_tokens": 9}, False, "en")
        await t.assistant.set_settings({"llm.max_tokens": 9}, False, "en")  # the same again is no news
        t.assistant._broadcast.close()
        told = [event for event in [event async for event in events] if event["type"] == "settings"]
    assert told == [{"type": "settings", "keys": ["llm.max_tokens"]}]


@virtual_time
async def test_another_language_reaches_recognizer_prompt_voice_and_status() -> None:
    async with room() as t:
        switching = t.assistant._switching

        async def follow(wanted: Any, lay: Callable[[Config], Config], stages: set[str]) -> None:
            assert stages == {"tts"}
            switching.config = lay(switching.config)
            t.assistant._floor.take_over(switching.config)  # as another voice begins to serve

        switching.follow = follow  # type: ignore[method-assign, assignment]
        await t.assistant.set_settings({"language": "ko"}, False, "en")
        await t.hears("몇 시야?")
        assert t.assistant.status()["language"] == "ko"
        asked = t.engines.asked[0][0]["content"]
        assert asked == load(None).llm.system_prompt_ko
    assert t.outcomes == ["answered"]


@virtual_time
async def test_a_name_that_was_read_anew_is_listened_to(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with room(file, mode="name") as t:
        file.write_text('[listen]\nmode = "name"\nname_en = "Jarvis"\n')
        assert (await t.assistant.reload())["applied"] == ["listen.name_en"]
        await t.hears("Ondam, what time is it?")
        await t.hears("Jarvis, what time is it?")
    assert t.outcomes == ["not_addressed", "answered"]


@virtual_time
async def test_a_detector_that_is_set_otherwise_takes_over_when_nobody_speaks(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with room(file) as t:
        file.write_text("[detect]\nthreshold = 0.95\n")  # this voice has 0.9
        await t.hears("What time is it?", seconds=3.0, then_s=1.0)
        assert t.assistant.status()["state"] == "hearing"
        await t.assistant.reload()
        await asyncio.sleep(15)
        assert t.outcomes == ["answered"]
        await t.hears("What time is it?")
        assert t.outcomes == ["answered"]


@virtual_time
async def test_a_file_that_is_broken_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with room(file) as t:
        file.write_text("[llm]\nmax_tokens = 0\n")
        before = t.assistant.config
        with pytest.raises(ConfigError, match=r"llm\.max_tokens"):
            await t.assistant.reload()
        assert t.assistant.config is before
        assert not (await setting(t, "llm.max_tokens"))["kept"]  # nobody knows what it will be


@virtual_time
async def test_devices_are_listed_and_the_one_that_is_used_is_chosen() -> None:
    async with room() as t:
        found = await t.assistant.devices()
        assert [(one["name"], one["chosen"], one["default"]) for one in found["microphones"]] == [
            ("alsa.builtin", False, True),
            ("alsa.headset", False, False),
        ]
        chosen = await t.assistant.choose_devices({"microphone": "alsa.headset"}, False)
        assert [one["chosen"] for one in chosen["microphones"]] == [False, True]
        assert not any(one["chosen"] for one in chosen["speakers"])
        chosen = await t.assistant.choose_devices({"microphone": None}, False)
        assert not any(one["chosen"] for one in chosen["microphones"])


@virtual_time
async def test_another_microphone_closes_the_one_before_and_hears() -> None:
    async with room() as t:
        [before] = t.open
        await t.assistant.choose_devices({"microphone": "alsa.headset"}, False)
        [now] = t.open
        assert now is not before
        await t.hears("What time is it?")
    assert t.outcomes == ["answered"]


@virtual_time
async def test_while_muted_another_microphone_is_only_remembered() -> None:
    async with room() as t:
        await t.assistant.set_mode("muted")
        await t.assistant.choose_devices({"microphone": "alsa.headset"}, False)
        assert t.open == []
        assert t.assistant.config.audio.microphone == "alsa.headset"
        await t.assistant.set_mode("open")
        assert len(t.open) == 1


@virtual_time
async def test_a_speaker_of_another_kind_takes_over_and_the_next_answer_is_heard_there() -> None:
    async with room() as t:
        before = t.assistant._sound._speaker
        await t.assistant.choose_devices({"speaker": "alsa.box"}, False)
        after = t.assistant._sound._speaker
        assert after is not before
        await t.hears("What time is it?")
        assert t.outcomes == ["answered"]
        assert len(after.recording().samples) > 0  # type: ignore[union-attr]
        assert len(before.recording().samples) == 0  # type: ignore[union-attr]


@virtual_time
async def test_a_device_that_there_is_not_is_refused_and_nothing_is_closed() -> None:
    async with room() as t:
        before = t.open
        for wrong in ("usb", "wav:/etc/passwd", "none"):
            with pytest.raises(ConfigError, match="there is no device"):
                await t.assistant.choose_devices({"microphone": wrong, "speaker": None}, False)
        assert t.open == before


@virtual_time
async def test_a_sound_file_that_is_not_there_leaves_the_microphone_that_was(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with room(file) as t:
        file.write_text(f'[audio]\nmicrophone = "wav:{tmp_path}/none.wav"\n[llm]\nmax_tokens = 9\n')
        opened = t._open

        def refuse(spec: str, *, on_fault: Any) -> Any:
            if spec.startswith("wav:"):
                raise AudioError("file_missing", path=spec)
            return opened(spec, on_fault=on_fault)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(sound, "open_microphone", refuse)
            with pytest.raises(AudioError):
                await t.assistant.reload()
            assert t.assistant.config.audio.microphone == "default"
            assert t.assistant.config.llm.max_tokens == 64
            assert len(t.open) == 1
            await t.hears("What time is it?")
    assert t.outcomes == ["answered"]


@virtual_time
async def test_levels_marks_and_the_answer_come_while_they_are_wanted() -> None:
    async with room() as t:
        async with t.assistant.subscribe() as plain, t.assistant.subscribe(levels=True) as events:
            reading = [asyncio.ensure_future(gathered(stream)) for stream in (plain, events)]
            await t.hears("What time is it?")
            t.assistant._broadcast.close()
            lasting, told = await asyncio.gather(*reading)
        assert not [event for event in lasting if event["type"] in wire.FLEETING]
        assert t.assistant._room.conversation()._meter is None
        turn = t.turns[0]
    heard = [event["microphone_db"] for event in told if event["type"] == "levels"]
    assert max(level for level in heard if level is not None) == pytest.approx(-15.3, abs=0.2)
    assert heard[-1] == -100.0  # the room is silent after it
    spoken = [event["speaker_db"] for event in told if event["type"] == "levels"]
    # The scripted voice is a constant 1000 of 32768.
    assert max(level for level in spoken if level is not None) == pytest.approx(-30.3, abs=0.2)
    marks = {event["name"]: event["at_ms"] for event in told if event["type"] == "mark"}
    assert marks == {
        name: pytest.approx(at_ms, abs=0.01)
        for name, at_ms in turn.as_json()["marks_ms"].items()
        if name != "dac_last_sample"
    }
    replies = [event["reply"] for event in told if event["type"] == "partial"]
    assert len(replies) > 2
    assert all(turn.heard.startswith(reply) for reply in replies)


@virtual_time
async def test_a_muted_microphone_has_no_level() -> None:
    async with room() as t, t.assistant.subscribe(levels=True) as events:
        await t.assistant.set_mode("muted")
        await asyncio.sleep(1)
        t.assistant._broadcast.close()
        levels = [event async for event in events if event["type"] == "levels"]
    assert levels[-1]["microphone_db"] is None


@virtual_time
async def test_diagnostics_hold_no_word_of_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    async with room(name_en="Jarvis") as t:
        t.engines.tokens = ("Swordfish ", "is ", "the ", "answer. ")
        await t.hears("My password is hunter2.")
        assert "hunter2" in json.dumps(t.assistant.status())  # for its user it is shown
        told = await t.assistant.diagnostics("en")
    assert t.outcomes == ["answered"]
    written = json.dumps(told, ensure_ascii=False)
    for word in ("hunter2", "Swordfish", "Jarvis", "voice assistant", "/nowhere"):
        assert word not in written, word
    assert told["config"]["llm.max_tokens"] == 64
    assert told["versions"]["ondam"] and told["versions"]["python"]
    assert told["status"]["last_turn"] is not None
    assert told["status"]["last_turn"]["outcome"] == "answered"


@virtual_time
async def test_the_conditions_of_a_turn_are_those_in_force_when_it_ended() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with table(monkeypatch) as t:
            seen: list[int] = []
            monkeypatch.setattr(
                t.assistant._remembering, "lasting", lambda config, crew: seen.append(config.llm.max_tokens)
            )
            await t.hears("What time is it?")
            await t.assistant._adjusting.change({"llm.max_tokens": 9}, keep=False)
            await t.hears("What time is it?")
    assert seen == [64, 9]
