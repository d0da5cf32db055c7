from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from tests.unit.clients.scripted import Connection, Script, Serve

from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.errors import EngineError
from ondam.pipeline.ports import SpeechEnd, SpeechStart
from ondam.types import Samples

MONO = {"rate": 22_050, "width": 2, "channels": 1}


def saying(
    *chunks: bytes, form: dict[str, int] = MONO, stop: bool = True, told: dict[str, Any] | None = None
) -> Script:
    async def script(connection: Connection) -> None:
        await connection.event()
        await connection.tell("audio-start", {**form, **(told or {})})
        for chunk in chunks:
            await connection.tell("audio-chunk", form, chunk)
        if stop:
            await connection.tell("audio-stop", {"context": {"ondam": {"engine_ms": 9.0}}})

    return script


async def spoken(address: str, text: str = "안녕하세요") -> tuple[list[SpeechStart], Samples, str | None]:
    """What was said, all samples together, and the code of the error it ended in."""
    starts: list[SpeechStart] = []
    samples: list[Samples] = []
    error = None
    async with aclosing(WyomingSynthesizer(address).synthesize(text, "ko")) as speech:
        try:
            async for piece in speech:
                if isinstance(piece, SpeechStart):
                    starts.append(piece)
                elif not isinstance(piece, SpeechEnd):
                    assert piece.dtype == np.int16
                    assert piece.ndim == 1
                    samples.append(piece)
        except EngineError as failure:
            assert failure.message("ko").text
            assert failure.message("en").text
            error = failure.code
    return starts, np.concatenate([np.zeros(0, np.int16), *samples]), error


async def test_the_format_and_the_engines_time_come_first_then_every_sample(serve: Serve) -> None:
    told = {"context": {"ondam": {"engine_ms": 31.5, "queued_ms": 0.5}}}
    server = await serve(saying(b"\1\0\2\0", b"\3\0", told=told))
    starts, samples, error = await spoken(server.address)
    assert starts == [SpeechStart(22_050, 31.5, 0.5)]
    assert samples.tolist() == [1, 2, 3]
    assert error is None


async def test_an_engine_that_tells_what_it_took_is_heard_out(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.event()
        form = {"rate": 22_050, "width": 2, "channels": 1}
        await connection.tell("audio-start", form)
        await connection.tell("audio-chunk", form, b"\1\0" * 2205)
        await connection.tell("audio-stop", {"context": {"ondam": {"engine_ms": 25.0, "audio_s": 0.1}}})

    server = await serve(script)
    pieces = [piece async for piece in WyomingSynthesizer(server.address).synthesize("안녕", "ko")]
    assert pieces[-1] == SpeechEnd(25.0, 0.1)


async def test_the_question_carries_text_language_and_voice(serve: Serve) -> None:
    asked: list[dict[str, Any]] = []

    async def script(connection: Connection) -> None:
        asked.append((await connection.event()).data)
        await connection.tell("audio-stop")

    server = await serve(script)
    async for _ in WyomingSynthesizer(server.address).synthesize("안녕", "ko"):
        pass
    async for _ in WyomingSynthesizer(server.address, voice="joe").synthesize("Hi", "en"):
        pass
    assert asked == [
        {"text": "안녕", "voice": {"language": "ko"}},
        {"text": "Hi", "voice": {"language": "en", "name": "joe"}},
    ]


async def test_b09_a_sample_cut_between_two_chunks_is_put_together(serve: Serve) -> None:
    server = await serve(saying(b"\1\0\2", b"\0\3", b"\0"))
    assert (await spoken(server.address))[1].tolist() == [1, 2, 3]


async def test_b09_an_odd_byte_at_the_end_is_left_out(serve: Serve) -> None:
    server = await serve(saying(b"\1\0\2"))
    starts, samples, error = await spoken(server.address)
    assert (starts, samples.tolist(), error) == ([SpeechStart(22_050)], [1], None)


async def test_b09_no_samples_are_no_error(serve: Serve) -> None:
    assert len((await spoken((await serve(saying())).address))[1]) == 0
    assert len((await spoken((await serve(saying(b""))).address))[1]) == 0


async def test_b09_noise_without_end_is_cut_faded_and_told(serve: Serve) -> None:
    loud = np.full(22_050, 10_000, dtype="<i2").tobytes()
    server = await serve(saying(*[loud] * 160))
    starts, samples, error = await spoken(server.address, "1번")
    assert error == "speech_too_long"
    assert len(starts) == 1
    assert len(samples) == int((2 + 0.35 * 2) * 22_050)
    fade = samples[-220:]
    assert samples[-221] == 10_000
    assert fade[-1] == 0
    assert np.all(np.diff(fade.astype(int)) <= 0)
    await asyncio.sleep(0.01)
    assert server.open == 0


async def test_b09_the_bound_holds_for_every_cut_of_the_noise(serve: Serve) -> None:
    most = int((2 + 0.35 * 2) * 22_050)
    noise = np.full(10 * 22_050, 10_000, dtype="<i2").tobytes()
    for size in (len(noise), 4_411, 2 * most - 1, 2 * most, 2 * most + 1):
        chunks = [noise[at : at + size] for at in range(0, len(noise), size)]
        _, samples, error = await spoken((await serve(saying(*chunks))).address, "1번")
        assert (len(samples), error) == (most, "speech_too_long")
        assert samples[-221] == 10_000
        assert np.all(np.diff(samples[-220:].astype(int)) < 0)
        assert samples[-1] == 0


@pytest.mark.parametrize("width", [1, 3, 4, 8])
async def test_b09_sound_that_could_hold_a_nan_is_refused_before_it_is_played(
    serve: Serve, width: int
) -> None:
    """Samples are 16-bit whole numbers, or nothing is played."""
    floats = np.array([np.nan, np.inf, -np.inf, 1.0], dtype="<f4").tobytes()
    form = {"rate": 22_050, "width": width, "channels": 1}
    starts, samples, error = await spoken((await serve(saying(floats, form=form))).address)
    assert (starts, len(samples), error) == ([], 0, "engine_broken_frame")


async def test_b09_bytes_of_a_nan_are_whole_numbers_like_any_other(serve: Serve) -> None:
    floats = np.array([np.nan, np.inf], dtype="<f4").tobytes()
    _, samples, error = await spoken((await serve(saying(floats))).address)
    assert (samples.tolist(), error) == ([0, 0x7FC0, 0, 0x7F80], None)


async def test_b09_the_next_text_is_said_after_one_that_was_cut(serve: Serve) -> None:
    loud = np.full(22_050, 10_000, dtype="<i2").tobytes()

    async def script(connection: Connection) -> None:
        endless = (await connection.event()).data["text"] == "1번"
        for chunk in [loud] * 160 if endless else [b"\1\0"]:
            await connection.tell("audio-chunk", MONO, chunk)
        await connection.tell("audio-stop")

    server = await serve(script)
    assert (await spoken(server.address, "1번"))[2] == "speech_too_long"
    _, samples, error = await spoken(server.address, "2번")
    assert (samples.tolist(), error) == ([1], None)


@pytest.mark.parametrize("empty", ["ping", "audio-chunk"])
async def test_b09_events_without_samples_do_not_keep_an_engine_alive(serve: Serve, empty: str) -> None:
    async def script(connection: Connection) -> None:
        await saying(b"\1\0", stop=False)(connection)
        while True:
            await asyncio.sleep(3)
            await connection.tell(empty, MONO)

    server = await serve(script)
    loop = asyncio.get_running_loop()
    began = loop.time()
    _, samples, error = await spoken(server.address)
    assert (samples.tolist(), error) == ([1], "engine_silent")
    assert loop.time() - began == pytest.approx(10)


async def test_the_wait_that_is_told_is_the_whole_one(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await saying(b"\1\0", stop=False)(connection)
        await asyncio.sleep(9)
        await connection.tell("ping")
        await asyncio.sleep(100)

    with pytest.raises(EngineError, match="said nothing for 10 s"):
        async for _ in WyomingSynthesizer((await serve(script)).address).synthesize("네", "ko"):
            pass


async def test_speech_just_within_the_bound_is_whole(serve: Serve) -> None:
    most = int((2 + 0.35 * 2) * 22_050)
    server = await serve(saying(np.full(most, 7, dtype="<i2").tobytes()))
    _, samples, error = await spoken(server.address, "1번")
    assert (len(samples), samples[-1], error) == (most, 7, None)


async def test_two_channels_are_mixed_without_overflow(serve: Serve) -> None:
    frames = np.array([[30_000, 30_000], [-32_768, -32_768], [10, 20]], dtype="<i2").tobytes()
    form = {"rate": 48_000, "width": 2, "channels": 2}
    server = await serve(saying(frames[:5], frames[5:], form=form))
    assert (await spoken(server.address))[1].tolist() == [30_000, -32_768, 15]


async def test_a_server_that_sends_no_audio_start_is_understood(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.event()
        await connection.tell("audio-chunk", MONO, b"\1\0")
        await connection.tell("audio-stop")

    starts, samples, _ = await spoken((await serve(script, scheme="tcp")).address)
    assert starts == [SpeechStart(22_050)]
    assert samples.tolist() == [1]


@pytest.mark.parametrize(
    "form",
    [
        {"rate": 22_050, "width": 4, "channels": 1},
        {"rate": 22_050, "width": 1, "channels": 1},
        {"rate": 0, "width": 2, "channels": 1},
        {"rate": 10**9, "width": 2, "channels": 1},
        {"rate": 22_050, "width": 2, "channels": 0},
        {"rate": 22_050, "width": 2, "channels": 99},
        {"rate": "22050", "width": 2, "channels": 1},
        {"width": 2, "channels": 1},
    ],
)
async def test_a_format_that_cannot_be_played_is_an_error(serve: Serve, form: dict[str, int]) -> None:
    _, samples, error = await spoken((await serve(saying(b"\1\0", form=form))).address)
    assert error == "engine_broken_frame"
    assert len(samples) == 0


async def test_a_format_that_changes_within_an_answer_is_an_error(serve: Serve) -> None:
    async def script(connection: Connection) -> None:
        await connection.event()
        await connection.tell("audio-start", MONO)
        await connection.tell("audio-chunk", MONO, b"\1\0")
        await connection.tell("audio-chunk", MONO | {"rate": 48_000}, b"\2\0")

    _, samples, error = await spoken((await serve(script)).address)
    assert samples.tolist() == [1]
    assert error == "engine_broken_frame"


async def test_an_engine_that_dies_while_speaking_has_not_finished(serve: Serve) -> None:
    _, samples, error = await spoken((await serve(saying(b"\1\0", stop=False))).address)
    assert samples.tolist() == [1]
    assert error == "engine_hung_up"


async def test_an_engine_that_falls_silent_is_given_up(serve: Serve) -> None:
    forever = asyncio.Event()

    async def script(connection: Connection) -> None:
        await saying(b"\1\0", stop=False)(connection)
        await forever.wait()

    server = await serve(script)
    loop = asyncio.get_running_loop()
    began = loop.time()
    _, samples, error = await spoken(server.address)
    assert samples.tolist() == [1]
    assert error == "engine_silent"
    assert loop.time() - began == pytest.approx(10)


async def test_the_listeners_own_time_is_not_the_engines(serve: Serve) -> None:
    server = await serve(saying(*[b"\1\0"] * 3))
    heard = 0
    async for piece in WyomingSynthesizer(server.address).synthesize("네", "ko"):
        await asyncio.sleep(60)
        heard += isinstance(piece, np.ndarray)
    assert heard == 3


async def test_closing_the_iterator_closes_the_connection_at_once(serve: Serve) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await saying(b"\1\0", stop=False)(connection)
        await connection.left()
        gone.set()

    server = await serve(script)
    began = asyncio.get_running_loop().time()
    speech = WyomingSynthesizer(server.address).synthesize("네", "ko")
    await anext(speech)
    assert server.open == 1
    await speech.aclose()
    await gone.wait()
    assert asyncio.get_running_loop().time() == began


async def test_a_text_that_cannot_be_sent_fails_at_once(serve: Serve) -> None:
    forever = asyncio.Event()
    server = await serve(lambda connection: forever.wait())
    began = asyncio.get_running_loop().time()
    with pytest.raises(UnicodeEncodeError):
        await anext(WyomingSynthesizer(server.address).synthesize("네 \ud83d", "ko"))
    assert asyncio.get_running_loop().time() == began
