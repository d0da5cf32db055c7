from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.unit.clients.scripted import Connection, Serve

from ondam.clients.wyoming_frames import LONGEST_LINE
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.errors import EngineError
from ondam.pipeline.ports import Transcript
from ondam.types import Audio

SECOND = Audio(np.arange(16_000, dtype=np.int16), 16_000)


async def whole_question(connection: Connection) -> list[Any]:
    events = [await connection.event()]
    while events[-1].type != "audio-stop":
        events.append(await connection.event())
    return events


async def code_of(serve: Serve, *answer: bytes, audio: Audio = SECOND) -> str:
    """The error code that a server's bytes, followed by the end of the stream, lead to."""

    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.send(*answer)

    server = await serve(script)
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address).transcribe(audio, "ko")
    assert caught.value.message("ko").text
    assert caught.value.message("en").text
    return caught.value.code


async def test_the_question_holds_every_sample_the_language_and_the_names(serve: Serve) -> None:
    heard: list[Any] = []

    async def script(connection: Connection) -> None:
        heard.extend(await whole_question(connection))
        await connection.tell("transcript", {"text": "안녕하세요"})

    server = await serve(script)
    await WyomingRecognizer(server.address).transcribe(SECOND, "ko", ["온담"])
    assert heard[0].data == {"language": "ko", "transcript_names": ["온담"]}
    assert [e.type for e in heard[1:]] == ["audio-start", *["audio-chunk"] * 4, "audio-stop"]
    assert b"".join(e.payload for e in heard if e.payload) == SECOND.samples.tobytes()
    assert {(e.data["rate"], e.data["width"], e.data["channels"]) for e in heard[1:-1]} == {(16_000, 2, 1)}


async def test_what_the_engine_measured_comes_along(serve: Serve) -> None:
    told = {"engine_ms": 151.5, "queued_ms": 2, "audio_s": 1.0, "no_speech_prob": 0.01, "avg_logprob": -0.2}

    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.tell("transcript", {"text": "네", "language": "ko", "context": {"ondam": told}})

    server = await serve(script)
    transcript = await WyomingRecognizer(server.address).transcribe(SECOND, "ko")
    assert transcript == Transcript("네", "ko", 151.5, 2.0, 0.01, -0.2)
    await asyncio.sleep(0.01)
    assert server.open == 0


async def test_a_server_that_measures_nothing_and_streams_its_transcript_is_understood(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.tell("transcript-start", {"language": "en"})
        await connection.tell("transcript-chunk", {"text": "Yes"})
        await connection.tell("transcript", {"text": "Yes."})

    server = await serve(script, scheme="tcp")
    assert await WyomingRecognizer(server.address).transcribe(SECOND, "en") == Transcript("Yes.")


async def test_silence_and_a_clip_without_samples_may_be_asked_about(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        assert [e.type for e in await whole_question(connection)] == [
            "transcribe",
            "audio-start",
            "audio-stop",
        ]
        await connection.tell("transcript", {"text": ""})

    server = await serve(script)
    nothing = Audio(np.zeros(0, dtype=np.int16), 16_000)
    assert await WyomingRecognizer(server.address).transcribe(nothing, "en") == Transcript("")


async def test_a_header_over_asyncios_limit_of_64_kib_is_read(serve: Serve) -> None:
    text = "가" * 30_000

    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.send(b'{"type":"transcript","data":{"text":"%s"}}\n' % text.encode())

    server = await serve(script)
    assert (await WyomingRecognizer(server.address).transcribe(SECOND, "ko")).text == text


@pytest.mark.parametrize(
    "answer",
    [
        b"[]\n",
        b"null\n",
        b"\n",
        b'{"type":1}\n',
        b"{}\n",
        b'{"type":"transcript","data":{"text":1}}\n',
        b'{"type":"transcript","data":{}}\n',
        b'{"type":"transcript","data":[]}\n',
        b'{"type":"transcript","data":{"text":"a","context":{"ondam":{"engine_ms":NaN}}}}\n',
        b'{"type":"transcript","data":{"text":"a","context":{"ondam":{"engine_ms":"1"}}}}\n',
        b'{"type":"transcript","data":{"text":"a","context":[]}}\n',
        b'{"type":"transcript","data":{"text":"\\ud83d"}}\n',
        b'{"type":"transcript","data_length":4294967295}\n',
        b'{"type":"transcript","data_length":-1}\n',
        b'{"type":"transcript","data_length":"4"}\nnull',
        b'{"type":"transcript","data_length":4}\nnull',
        b'{"type":"transcript","payload_length":4294967295}\n',
        b'{"type":"\xff"}\n',
        b'{"type":"error","data":{"text":[]}}\n',
        b"[" * 100_000 + b"\n",
    ],
)
async def test_b28_a_broken_frame_is_an_error(serve: Serve, answer: bytes) -> None:
    assert await code_of(serve, answer) == "engine_broken_frame"


async def test_b28_a_line_without_end_is_refused_before_it_fills_memory(serve: Serve) -> None:
    sent = 0

    async def script(connection: Connection) -> None:
        nonlocal sent
        await whole_question(connection)
        while True:
            await connection.send(b"x" * 65536)
            sent += 65536

    server = await serve(script)
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address).transcribe(SECOND, "ko")
    assert caught.value.code == "engine_broken_frame"
    await asyncio.sleep(0.01)
    assert server.open == 0
    assert sent <= 4 * LONGEST_LINE


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b'{"type":"transcr',
        b'{"type":"transcript","data_length":20}\n{"text"',
        b'{"type":"transcript","data_length":12}\n{"text":"a"}'[:-1],
        b'{"type":"pong"}\n',
    ],
)
async def test_an_end_of_stream_is_no_answer(serve: Serve, answer: bytes) -> None:
    assert await code_of(serve, answer) == "engine_hung_up"


async def test_the_engines_own_words_are_told(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.event()
        await connection.tell("error", {"text": "no\nKorean", "code": "unsupported_language"})

    server = await serve(script)
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address).transcribe(SECOND, "ko")
    assert caught.value.code == "engine_refused"
    assert caught.value.facts["kind"] == "unsupported_language"
    assert str(caught.value).endswith("(unsupported_language): no Korean")


async def test_a_refusal_in_the_middle_of_a_long_question_is_heard(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.event()
        await connection.tell("error", {"text": "too long", "code": "too_long"})
        await connection.left()

    server = await serve(script)
    hour = Audio(np.zeros(16_000 * 600, dtype=np.int16), 16_000)
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address).transcribe(hour, "ko")
    assert caught.value.facts["kind"] == "too_long"


async def test_b28_a_server_that_never_reads_is_given_up(serve: Serve) -> None:
    forever = asyncio.Event()
    server = await serve(lambda connection: forever.wait())
    minutes = Audio(np.zeros(16_000 * 300, dtype=np.int16), 16_000)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address, timeout_s=20).transcribe(minutes, "ko")
    assert caught.value.code == "engine_silent"
    assert loop.time() - began == pytest.approx(20 + 2 * 300)


async def test_a_server_that_only_pings_is_given_up_too(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        while True:
            await connection.tell("ping")
            await asyncio.sleep(1)

    server = await serve(script)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(server.address, timeout_s=20).transcribe(SECOND, "ko")
    assert caught.value.code == "engine_silent"
    assert loop.time() - began == pytest.approx(22)


@pytest.mark.parametrize("address", ["unix:///nowhere/x.sock", "tcp://127.0.0.1:1"])
async def test_nobody_listening_is_told(address: str) -> None:
    with pytest.raises(EngineError) as caught:
        await WyomingRecognizer(address).transcribe(SECOND, "ko")
    assert caught.value.code == "engine_unreachable"


@pytest.mark.parametrize(
    "address", ["", "unix://x.sock", "/x.sock", "tcp://host", "tcp://host:99999", "tcp://h:1/x", "http://h:1"]
)
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(EngineError) as caught:
        WyomingRecognizer(address)
    assert caught.value.code == "speech_address_malformed"


async def test_cancelling_closes_the_connection_at_once(serve: Serve) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.left()
        gone.set()

    server = await serve(script)
    job = asyncio.create_task(WyomingRecognizer(server.address).transcribe(SECOND, "ko"))
    await asyncio.sleep(0.05)
    assert server.open == 1
    began = asyncio.get_running_loop().time()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    await gone.wait()
    assert asyncio.get_running_loop().time() == began


async def test_cancelling_while_the_question_is_stuck_closes_the_connection_at_once(serve: Serve) -> None:
    gone = asyncio.Event()
    go_on = asyncio.Event()

    async def script(connection: Connection) -> None:
        await go_on.wait()
        await connection.left()
        gone.set()

    server = await serve(script)
    minutes = Audio(np.zeros(16_000 * 300, dtype=np.int16), 16_000)
    job = asyncio.create_task(WyomingRecognizer(server.address).transcribe(minutes, "ko"))
    await asyncio.sleep(0.05)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    go_on.set()
    await gone.wait()


async def test_every_request_has_a_connection_of_its_own(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await whole_question(connection)
        await connection.tell("transcript", {"text": "네"})
        await connection.left()

    server = await serve(script)
    recognizer = WyomingRecognizer(server.address)
    await asyncio.gather(*(recognizer.transcribe(SECOND, "ko") for _ in range(5)))
    await asyncio.sleep(0.01)
    assert (server.accepted, server.open) == (5, 0)
