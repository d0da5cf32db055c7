from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.kit.conftest import Serve
from tests.unit.kit.models import FORM, ScriptedTts

from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.limits import LIMITS
from ondam_engines.kit.tts import Voice


async def test_a_synthesis_is_start_chunks_stop_with_what_was_measured(
    serve: Serve, tts: ScriptedTts
) -> None:
    tts.say = lambda text, cancel: iter([b"\1\0" * 2_000, b"\2\0" * 1_600])
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "안녕", "voice": {"language": "ko-KR"}})
    events = await client.until("audio-stop")
    # 2,000 samples are 0.125 s: cut after 0.1 s.
    assert [len(event.payload or b"") for event in events] == [0, 3_200, 800, 3_200, 0]
    assert events[0].type == "audio-start"
    assert {key: events[0].data[key] for key in FORM} == FORM
    assert events[0].data["context"]["ondam"].keys() == {"engine_ms", "queued_ms"}
    assert events[-1].data["context"]["ondam"]["audio_s"] == 3_600 / 16_000
    assert events[-1].data["context"]["ondam"]["engine_ms"] >= events[0].data["context"]["ondam"]["engine_ms"]


async def test_audio_start_waits_for_the_first_samples(serve: Serve, tts: ScriptedTts) -> None:
    gate = threading.Event()

    def say(text: str, cancel: Cancel) -> Iterator[bytes]:
        yield b""
        assert gate.wait(10)
        yield b"\1\0"

    tts.say = say
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "a"})
    await client.send("ping")
    assert (await client.next()).type == "pong"
    gate.set()
    assert [event.type for event in await client.until("audio-stop")] == [
        "audio-start",
        "audio-chunk",
        "audio-stop",
    ]


async def test_samples_leave_before_the_last_is_computed(serve: Serve, tts: ScriptedTts) -> None:
    gate = threading.Event()

    def say(text: str, cancel: Cancel) -> Iterator[bytes]:
        yield b"\1\0"
        assert gate.wait(10)
        yield b"\2\0"

    tts.say = say
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "a"})
    assert [event.type for event in await client.until("audio-chunk")] == ["audio-start", "audio-chunk"]
    gate.set()
    assert [event.type for event in await client.until("audio-stop")] == ["audio-chunk", "audio-stop"]


@pytest.mark.parametrize(
    ("voice", "chosen"),
    [
        (None, "Yuna"),
        ({}, "Yuna"),
        ({"language": "en"}, "Joe"),
        ({"name": "Joe"}, "Joe"),
        ({"name": "somebody", "language": "en"}, "Joe"),
        ({"name": "somebody"}, "Yuna"),
    ],
)
async def test_a_voice_is_chosen_by_name_then_language_then_launch(
    serve: Serve, tts: ScriptedTts, voice: object, chosen: str
) -> None:
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "a", "voice": voice})
    await client.until("audio-stop")
    assert tts.asked == [("a", chosen)]


@pytest.mark.parametrize(
    ("voice", "chosen"),
    [
        (None, ("Yuna", "ko")),
        ({"language": "en"}, ("Yuna", "en")),
        ({"name": "Mina", "language": "en-US"}, ("Mina", "en")),
        ({"name": "Mina"}, ("Mina", "ko")),
        ({"name": "Joe", "language": "ko"}, ("Joe", "en")),
    ],
)
async def test_a_voice_of_several_languages_speaks_the_one_that_is_asked_for(
    serve: Serve, tts: ScriptedTts, voice: object, chosen: tuple[str, str]
) -> None:
    both = [Voice(name, language) for name in ("Yuna", "Mina") for language in ("ko", "en")]
    tts.voices = [*both, Voice("Joe", "en")]
    client = await (await serve(tts))()
    await client.send("describe")
    (program,) = (await client.next()).data["tts"]
    assert [(told["name"], told["languages"]) for told in program["voices"]] == [
        ("Yuna", ["ko", "en"]),
        ("Mina", ["ko", "en"]),
        ("Joe", ["en"]),
    ]
    await client.send("synthesize", {"text": "a", "voice": voice})
    await client.until("audio-stop")
    assert tts.spoken == [chosen]


async def test_control_characters_do_not_reach_the_model(serve: Serve, tts: ScriptedTts) -> None:
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "\0하나\r\n\x1b둘\t"})
    await client.until("audio-stop")
    assert tts.asked == [("하나 둘", "Yuna")]


@pytest.mark.parametrize("text", ["", "  ", "\0"])
async def test_a_text_without_sound_is_answered_without_asking_the_model(
    serve: Serve, tts: ScriptedTts, text: str
) -> None:
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": text})
    events = await client.until("audio-stop")
    assert [event.type for event in events] == ["audio-start", "audio-stop"]
    assert events[-1].data["context"]["ondam"]["audio_s"] == 0
    assert tts.asked == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({}, "bad_request"),
        ({"text": None}, "bad_request"),
        ({"text": ["a"]}, "bad_request"),
        ({"text": "가" * 2_001}, "too_long"),
        ({"text": "a", "voice": 7}, "bad_request"),
        ({"text": "a", "voice": {"name": 7}}, "bad_request"),
        ({"text": "a", "voice": {"language": "fr"}}, "unsupported_language"),
    ],
)
async def test_what_cannot_be_said_is_an_error(
    serve: Serve, tts: ScriptedTts, data: dict[str, Any], code: str
) -> None:
    client = await (await serve(tts))()
    await client.send("synthesize", data)
    assert (await client.next()).data["code"] == code
    assert await client.rest() == b""


async def test_leaving_stops_a_voice_at_its_next_sample(serve: Serve, tts: ScriptedTts) -> None:
    said = 0
    ended = threading.Event()

    def say(text: str, cancel: Cancel) -> Iterator[bytes]:
        nonlocal said
        try:
            while said < 10_000:
                said += 1
                yield b"\1\0"
                ended.wait(0.001)
        finally:
            ended.set()

    tts.say = say
    client = await (await serve(tts))()
    await client.send("synthesize", {"text": "a"})
    await client.until("audio-chunk")
    client.leave()
    assert await asyncio.to_thread(ended.wait, 5)
    assert said < 10_000


async def test_a_client_that_does_not_read_does_not_hold_the_voice(serve: Serve, tts: ScriptedTts) -> None:
    connect = await serve(tts)
    tts.say = lambda text, cancel: iter([b"\1\0" * 16_000] * 60)  # 1.9 MB, far over what a socket holds
    lazy = await connect()
    await lazy.send("synthesize", {"text": "a"})
    other = await connect()
    await other.send("synthesize", {"text": "b"})
    events = await other.until("audio-stop")
    assert sum(len(event.payload or b"") for event in events) == 60 * 32_000
    events = await lazy.until("audio-stop")
    assert sum(len(event.payload or b"") for event in events) == 60 * 32_000


async def test_what_is_kept_for_a_slow_reader_is_bounded(serve: Serve, tts: ScriptedTts) -> None:
    said = 0
    ended = threading.Event()

    def say(text: str, cancel: Cancel) -> Iterator[bytes]:
        nonlocal said
        try:
            while said < 1_000:
                said += 1
                yield b"\1\0" * 16_000
                # As slowly as the server can take notice.
                ended.wait(0.001)
        finally:
            ended.set()

    tts.say = say
    client = await (await serve(tts, replace(LIMITS, answer_bytes=2**20)))()
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
    await client.send("synthesize", {"text": "a"})
    assert await asyncio.to_thread(ended.wait, 20)
    assert said < 1_000
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]
    assert b'"failed"' in await client.rest()
