"""Settings, levels and diagnostics of a daemon that runs, through its real socket and engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ondam.control import wire
from ondam.control.client import Client
from ondam.errors import ConfigError, ControlError
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(120)]

SPEED = "engines.piper.speed"


def value(settings: wire.Settings, key: str) -> object:
    return next(one["value"] for one in settings["settings"] if one["key"] == key)


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[list[wire.Event]]:
    """Events from now on, what is fleeting too."""
    told: list[wire.Event] = []

    async def follow() -> None:
        async for event in client.events(levels=True):
            told.append(event)

    task = asyncio.create_task(follow())
    async with asyncio.timeout(5):
        while not told:
            await asyncio.sleep(0.01)
    yield told
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_running_turn_is_seen_as_it_goes_and_its_record_says_the_same(resident: House) -> None:
    async with resident.client() as client, following(client) as told:
        before = value(await client.settings(), "llm.max_tokens")
        await client.set_settings({"llm.max_tokens": 12})
        turn = await client.ask("Where is Paris?", speak=True)
        await asyncio.sleep(0.5)
        await client.set_settings({"llm.max_tokens": before})
    marks = {event["name"]: event["at_ms"] for event in told if event["type"] == "mark"}
    assert {"llm_sent", "llm_first_token", "first_clause", "tts_first_audio", "dac_first_sample"} <= set(
        marks
    )
    assert marks == {name: at for name, at in turn["marks_ms"].items() if name in marks}
    replies = [event["reply"] for event in told if event["type"] == "partial"]
    assert replies and all((turn["reply"] or "").startswith(reply) for reply in replies)
    levels = [event for event in told if event["type"] == "levels"]
    assert {event["microphone_db"] for event in levels} == {None}  # there is none
    loudest = max(event["speaker_db"] or -100.0 for event in levels)
    assert -40 < loudest <= 0
    assert levels[-1]["speaker_db"] == -100.0


async def test_pace_length_and_language_change_without_a_restart_and_change_back(resident: House) -> None:
    async with resident.client() as client, following(client) as told:
        before = await client.settings()
        pid = engine(await client.status(), "piper")["pid"]
        slow = await client.say("One, two, three.")
        after = await client.set_settings({SPEED: 2.0, "llm.max_tokens": 9})
        assert (value(after, SPEED), value(after, "llm.max_tokens")) == (2.0, 9)
        status = await client.status()
        assert engine(status, "piper")["pid"] != pid
        assert status["faults"] == []
        quick = await client.say("One, two, three.")
        assert quick["audio"]["seconds"] < 0.75 * slow["audio"]["seconds"]
        tokens = (await client.ask("Tell me a story."))["tokens"]["output"]
        assert tokens is not None and tokens <= 9
        await client.set_settings({"language": "ko"})
        assert (await client.status())["language"] == "ko"
        assert (await client.say("안녕하세요."))["language"] == "ko"
        # The pace is of the voice that speaks, and that is another one now.
        await client.set_settings({"language": value(before, "language")})
        await client.set_settings({key: value(before, key) for key in (SPEED, "llm.max_tokens")})
        assert [one["value"] for one in (await client.settings())["settings"]] == [
            one["value"] for one in before["settings"]
        ]
    changes = [event["keys"] for event in told if event["type"] == "settings"]
    assert changes == [[SPEED, "llm.max_tokens"], ["language"], ["language"], [SPEED, "llm.max_tokens"]]


async def test_the_file_is_read_again_or_refused_as_a_whole(resident: House) -> None:
    file = resident.places.config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    async with resident.client() as client:
        await client.reload()  # whatever others have set is as the file has it again
        file.write_text('[llm]\ntemperature = 0.5\n[metrics]\nlisten = "127.0.0.1:9"\n')
        assert await client.reload() == {"applied": ["llm.temperature"], "needs_restart": ["metrics.listen"]}
        file.write_text('[llm]\ntemperature = 9.0\nmodell = "x"\n')
        with pytest.raises(ConfigError) as caught:
            await client.reload()
        assert {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]} == {
            "llm.temperature",
            "llm.modell",
        }
        file.unlink()
        assert (await client.reload())["applied"] == ["llm.temperature"]


async def test_what_may_not_be_set_is_refused_and_diagnostics_hold_no_words(resident: House) -> None:
    async with resident.client() as client:
        for wanted in ({"llm.url": "http://x"}, {"audio.speaker": "wav:/tmp/x.wav"}, {SPEED: 20}):
            with pytest.raises(ControlError) as caught:
                await client.set_settings(wanted)
            assert caught.value.code == "control_bad_request"
        await client.ask("Is swordfish a password?")
        told = json.dumps(await client.diagnostics())
    assert "swordfish" not in told
