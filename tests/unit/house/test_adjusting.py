"""Other settings while it runs: all or nothing, and each kind in its own way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from ondam.config import Config, load
from ondam.errors import AudioError, ConfigError, EngineError, OndamError
from ondam.house.adjusting import Adjusting, Reloaded, taken, with_values
from ondam.house.switching import Switching
from ondam.types import Language, Mode


class Switch:
    """Stands for ``Switching``."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.followed: list[tuple[dict[str, str], set[str]]] = []
        self.failing: OndamError | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def able(self, stage: str, model: str) -> Collection[str]:
        return ["espeak"] if model == "robot" else []

    async def follow(
        self, wanted: Mapping[str, str], lay: Callable[[Config], Config], stages: Collection[str]
    ) -> None:
        self.followed.append((dict(wanted), set(stages)))
        await asyncio.sleep(0)
        self.meanwhile()
        if self.failing:
            raise self.failing
        self.config = lay(self.config)


class Room:
    """Stands for the assistant."""

    def __init__(self) -> None:
        self.applied: list[tuple[Config, set[str], Mode | None]] = []
        self.failing: OndamError | None = None
        self.hears_all = True

    async def adjusted(self, config: Config, keys: Collection[str], mode: Mode | None) -> None:
        self.applied.append((config, set(keys), mode))
        if self.failing:
            failing, self.failing = self.failing, None
            raise failing

    def stages_of(self, engine: str) -> Collection[str]:
        return {"piper": ["tts"], "llama_server": ["llm"]}.get(engine, [])

    def hears(self, language: Language) -> bool:
        return self.hears_all


class Desk:
    def __init__(self, file: Path, **overrides: Any) -> None:
        self.file = file
        self.room = Room()
        self.switch = Switch(load(None, {"language": "en", **overrides}))
        self.adjusting = Adjusting(
            cast(Switching, self.switch), file, lambda: load(file, {"language": "en"}), self.room
        )

    @property
    def config(self) -> Config:
        return self.switch.config

    async def change(self, keep: bool = False, **wanted: object) -> None:
        await self.adjusting.change({k.replace("__", "."): v for k, v in wanted.items()}, keep=keep)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "config.toml")


async def test_a_live_key_is_applied_at_once_and_no_engine_is_touched(desk: Desk) -> None:
    await desk.change(llm__max_tokens=99)
    assert desk.config.llm.max_tokens == 99
    [(config, keys, mode)] = desk.room.applied
    assert (config, keys, mode) == (desk.config, {"llm.max_tokens"}, None)
    assert desk.switch.followed == []
    assert not desk.file.exists()


async def test_a_value_that_is_wrong_changes_nothing_of_the_others(desk: Desk) -> None:
    before = desk.config
    with pytest.raises(ConfigError) as caught:
        await desk.change(llm__max_tokens=0, journal__keep_days=5, llm__max_token=1, language="fr")
    assert {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]} == {
        "llm.max_tokens",
        "llm.max_token",
        "language",
    }
    assert (desk.config, desk.room.applied, desk.switch.followed) == (before, [], [])


async def test_values_that_contradict_one_another_are_refused(desk: Desk) -> None:
    with pytest.raises(ConfigError, match=r"llm\.max_tokens"):
        await desk.change(llm__max_tokens=500, llm__context_tokens=400)


async def test_an_engines_option_starts_the_engine_anew_before_anything_else_counts(desk: Desk) -> None:
    desk.switch.meanwhile = lambda: seen.append(len(desk.room.applied))
    seen: list[int] = []
    await desk.change(engines__piper__speed=1.2, llm__max_tokens=9)
    assert desk.switch.followed == [({"engines.piper.speed": "1.2"}, {"tts"})]
    assert seen == [0]
    assert desk.config.engines == {"piper": {"speed": 1.2}}
    assert desk.room.applied[0][1] == {"engines.piper.speed", "llm.max_tokens"}


async def test_an_engine_that_does_not_come_up_leaves_all_as_it_was(desk: Desk) -> None:
    before, desk.switch.failing = desk.config, EngineError("switch_failed", wanted="x", reason="y")
    with pytest.raises(EngineError):
        await desk.change(keep=True, tts__engine="espeak", llm__max_tokens=9)
    assert (desk.config, desk.room.applied) == (before, [])
    assert not desk.file.exists()


async def test_an_option_of_an_engine_that_does_not_run_waits_for_it(desk: Desk) -> None:
    await desk.change(engines__supertonic__speed=1.2)
    assert desk.switch.followed == []
    assert desk.config.engines == {"supertonic": {"speed": 1.2}}


async def test_another_language_brings_a_voice_and_a_recognizer_only_where_that_is_needed(desk: Desk) -> None:
    await desk.change(language="ko")
    assert desk.switch.followed == [({"language": "ko"}, {"tts"})]
    assert desk.config.spoken_language == "ko"
    desk.room.hears_all = False
    await desk.change(language="en")
    assert desk.switch.followed[-1] == ({"language": "en"}, {"tts", "stt"})


async def test_the_language_by_another_name_is_no_other_language(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    await desk.change(language="auto")
    assert desk.switch.followed == []
    assert desk.config.language == "auto"


async def test_engines_by_address_are_not_started_anew(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "config.toml", tts={"address": "tcp://box:1"})
    await desk.change(language="ko")
    assert desk.switch.followed == []
    assert desk.room.applied[0][1] == {"language"}


async def test_a_voice_that_is_named_alone_brings_an_engine_that_can_speak_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "config.toml", tts={"engine": "piper", "model": "joe"})
    await desk.change(tts__model="robot")
    assert (desk.config.tts.engine, desk.config.tts.model) == ("auto", "robot")
    await desk.change(tts__engine="piper")
    assert (desk.config.tts.engine, desk.config.tts.model) == ("piper", "auto")


async def test_what_was_switched_meanwhile_is_not_undone(desk: Desk) -> None:
    def switched() -> None:
        desk.switch.config = with_values(desk.config, {"llm.model": "larger"})

    desk.switch.meanwhile = switched
    await desk.change(engines__piper__speed=1.2, llm__max_tokens=9)
    assert desk.config.llm.model == "larger"
    assert (desk.config.llm.max_tokens, desk.config.engines["piper"]) == (9, {"speed": 1.2})


async def test_a_mode_lasts_until_the_daemon_ends_unless_it_is_kept(desk: Desk) -> None:
    await desk.change(listen__mode="muted")
    assert desk.room.applied[-1][1:] == (set(), "muted")
    modes = [desk.config.listen.mode]
    await desk.change(keep=True, listen__mode="push")
    assert desk.room.applied[-1][1:] == ({"listen.mode"}, "push")
    assert [*modes, desk.config.listen.mode] == ["open", "push"]
    assert load(desk.file).listen.mode == "push"


async def test_reading_the_file_again_never_opens_a_microphone_that_was_muted_by_hand(desk: Desk) -> None:
    await desk.change(listen__mode="muted")
    desk.file.write_text("[llm]\nmax_tokens = 7\n")
    assert await desk.adjusting.reload() == Reloaded(("llm.max_tokens",), ())
    assert desk.room.applied[-1][2] is None


async def test_what_is_kept_is_in_the_file_beside_what_was_there(desk: Desk) -> None:
    desk.file.write_text("# mine\n[llm]\ntemperature = 0.5 # warm\n")
    await desk.change(keep=True, llm__max_tokens=9, engines__piper__speed=1.2, language="ko")
    there = load(desk.file)
    assert (there.language, there.llm.max_tokens, there.engines) == ("ko", 9, {"piper": {"speed": 1.2}})
    assert "temperature = 0.5 # warm" in desk.file.read_text()


async def test_nothing_is_changed_that_could_not_be_kept(desk: Desk) -> None:
    desk.file.write_text("[llm\n")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        await desk.change(keep=True, llm__max_tokens=9)
    assert desk.room.applied == []
    assert desk.file.read_text() == "[llm\n"


async def test_a_file_is_read_again_live_keys_count_and_the_others_are_named(desk: Desk) -> None:
    desk.file.write_text(
        '[llm]\nmax_tokens = 7\n[metrics]\nlisten = "127.0.0.1:9"\n[engines.piper]\nspeed=1.5\n'
    )
    done = await desk.adjusting.reload()
    assert done == Reloaded(("llm.max_tokens", "engines.piper.speed"), ("metrics.listen",))
    assert desk.config.llm.max_tokens == 7
    assert desk.config.metrics.listen == ""  # it runs as it did
    assert desk.switch.followed == [({"engines.piper.speed": "1.5"}, {"tts"})]
    # The restart is still needed, and told each time; the others are as the file has them.
    assert await desk.adjusting.reload() == Reloaded((), ("metrics.listen",))


async def test_what_is_no_longer_in_the_file_is_as_shipped_again(desk: Desk) -> None:
    desk.file.write_text("[llm]\nmax_tokens = 7\n[engines.piper]\nspeed=1.5\n")
    await desk.adjusting.reload()
    desk.file.write_text("")
    assert (await desk.adjusting.reload()).applied == ("llm.max_tokens", "engines.piper.speed")
    assert desk.config.llm.max_tokens == 64
    assert desk.config.engines == {"piper": {}}


async def test_a_file_that_is_broken_is_refused_with_all_problems_and_the_old_one_stays(desk: Desk) -> None:
    before = desk.config
    desk.file.write_text('[journal]\nkeep_days = 0\n[llm]\nmax_tokens = 0\nmodell = "x"\n')
    with pytest.raises(ConfigError) as caught:
        await desk.adjusting.reload()
    assert len(str(caught.value).splitlines()) == 4
    assert (desk.config, desk.room.applied) == (before, [])


async def test_what_the_room_cannot_do_is_undone_as_a_whole(desk: Desk) -> None:
    before, desk.room.failing = desk.config, AudioError("file_missing", path="/x.wav")
    with pytest.raises(AudioError):
        await desk.change(audio__microphone="wav:/x.wav", llm__max_tokens=9)
    assert desk.config == before
    assert desk.room.applied[-1] == (before, {"audio.microphone", "llm.max_tokens"}, None)


async def test_a_caller_who_leaves_does_not_end_the_change(desk: Desk) -> None:
    going_on = asyncio.Event()

    async def slowly(*_: object) -> None:
        await going_on.wait()

    desk.switch.follow = slowly  # type: ignore[method-assign, assignment]
    caller = asyncio.create_task(desk.change(engines__piper__speed=1.2))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    going_on.set()
    await asyncio.sleep(0.01)
    assert desk.config.engines == {"piper": {"speed": 1.2}}
    await desk.adjusting.close()


async def test_of_two_at_once_the_second_begins_when_the_first_is_done(desk: Desk) -> None:
    await asyncio.gather(desk.change(engines__piper__speed=1.2), desk.change(llm__max_tokens=9))
    assert (desk.config.llm.max_tokens, desk.config.engines) == (9, {"piper": {"speed": 1.2}})


def test_only_what_is_named_is_taken_from_another_configuration() -> None:
    one = load(None, {"engines": {"piper": {"speed": 1.5}}, "llm": {"max_tokens": 7}})
    other = load(None, {"llm": {"max_tokens": 8, "temperature": 1.0}})
    made = taken(one, ["llm.max_tokens", "engines.piper.speed"], other)
    assert (made.llm.max_tokens, made.llm.temperature, made.engines) == (8, 0.0, {"piper": {}})
    assert taken(one, [], other) is one
