"""OpenAI's own client on the control socket, as any other tool on the box would use it."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import numpy as np
import openai
import pytest
from tests.unit.control.fake_daemon import FakeDaemon, until

from ondam.control import sound
from ondam.control.server import Server
from ondam.errors import EngineError
from ondam.pipeline.ports import SpeechStart
from ondam.types import Audio

CHUNK = (
    'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    '[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n'
)


@pytest.fixture
async def tool(server: Server, socket_path: Path) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = httpx2.AsyncHTTPTransport(uds=str(socket_path))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        openai.AsyncOpenAI(
            base_url="http://ondam/v1", api_key="none", http_client=http, max_retries=0
        ) as client,
    ):
        yield client


def speech(samples: int) -> bytes:
    return sound.encode(Audio(np.zeros(samples, np.int16), 16_000))


async def test_a_chat_streams_through_chunk_by_chunk(tool: openai.AsyncOpenAI, daemon: FakeDaemon) -> None:
    daemon.chunks = [(CHUNK % "안녕").encode(), (CHUNK % "하세요").encode(), b"data: [DONE]\n\n"]
    daemon.hold = asyncio.Event()
    request = asyncio.create_task(
        tool.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True, temperature=0.5
        )
    )
    await until(lambda: bool(daemon.asked))
    assert daemon.asked == [
        (
            "chat",
            {
                "model": "m",
                "messages": [{"role": "user", "content": "hi"}],
                "stream": True,
                "temperature": 0.5,
            },
        )
    ]
    daemon.hold.set()  # lets the call itself through; the fake waits again after each chunk
    daemon.hold = asyncio.Event()
    stream = await request
    pieces = aiter(stream)
    async with asyncio.timeout(2):
        # The second chunk does not exist yet: the first was not held back for it.
        assert (await anext(pieces)).choices[0].delta.content == "안녕"
    daemon.hold.set()
    assert [piece.choices[0].delta.content async for piece in pieces] == ["하세요"]


async def test_a_reader_that_leaves_closes_the_connection_to_the_engine(
    tool: openai.AsyncOpenAI, daemon: FakeDaemon
) -> None:
    daemon.chunks = [(CHUNK % "a").encode()] * 2
    stream = await tool.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    daemon.hold = asyncio.Event()
    await anext(aiter(stream))
    await stream.close()
    async with asyncio.timeout(2):
        await daemon.cancelled.wait()


async def test_models_lists_what_is_resident(tool: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in tool.models.list()] == ["whisper-base", "smollm2-135m-instruct"]


async def test_a_transcription_uses_the_prompt_as_names(tool: openai.AsyncOpenAI, daemon: FakeDaemon) -> None:
    heard = await tool.audio.transcriptions.create(
        model="whisper-1", file=("a.wav", speech(16_000)), language="ko", prompt="김하늘, 이바다 "
    )
    assert heard.text == "안녕하세요."
    assert daemon.asked == [("transcribe", 16_000, 16_000, "ko", ["김하늘", "이바다"])]


async def test_verbose_and_text_transcriptions(tool: openai.AsyncOpenAI) -> None:
    verbose = await tool.audio.transcriptions.create(
        model="m", file=("a.wav", speech(8_000)), response_format="verbose_json"
    )
    assert (verbose.duration, verbose.language) == (0.5, "ko")
    text = await tool.audio.transcriptions.create(
        model="m", file=("a.wav", speech(8_000)), response_format="text"
    )
    assert str(text) == "안녕하세요.\n"


async def test_speech_is_a_wav_at_the_voices_rate(tool: openai.AsyncOpenAI, daemon: FakeDaemon) -> None:
    answer = await tool.audio.speech.create(model="tts-1", voice="ko", input="안녕", response_format="wav")
    body = answer.read()
    with wave.open(io.BytesIO(body)) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (22_050, 2, 1)
    assert np.frombuffer(body[44:], "<i2").tolist() == [*range(2205), *[7] * 2205]
    assert daemon.asked == [("synthesize", "안녕", "ko")]


async def test_pcm_speech_is_resampled_to_what_openai_promises(tool: openai.AsyncOpenAI) -> None:
    answer = await tool.audio.speech.create(model="tts-1", voice="alloy", input="hi", response_format="pcm")
    # 4410 samples at 22,050 Hz are 0.2 s: 4800 samples at 24,000 Hz, two bytes each.
    assert len(answer.read()) == 9600


async def test_a_spare_voice_that_takes_over_may_have_another_rate(
    tool: openai.AsyncOpenAI, daemon: FakeDaemon
) -> None:
    daemon.speech = [
        SpeechStart(24_000),
        np.zeros(2400, np.int16),
        SpeechStart(48_000),
        np.zeros(4800, np.int16),
    ]
    answer = await tool.audio.speech.create(model="tts-1", voice="alloy", input="hi", response_format="pcm")
    assert len(answer.read()) == 2 * (2400 + 2400)


async def test_what_we_cannot_give_is_refused_in_openais_form(tool: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await tool.audio.speech.create(model="tts-1", voice="alloy", input="hi", response_format="mp3")
    assert caught.value.code == "control_bad_request"
    assert "wav | pcm" in caught.value.message
    with pytest.raises(openai.BadRequestError, match="language"):
        await tool.audio.transcriptions.create(model="m", file=("a.wav", speech(100)), language="fr")
    with pytest.raises(openai.BadRequestError, match="not a sound file"):
        await tool.audio.transcriptions.create(model="m", file=("a.wav", b"<html>"))


async def test_an_engine_that_is_down_is_a_server_error_with_its_reason(
    tool: openai.AsyncOpenAI, daemon: FakeDaemon
) -> None:
    daemon.failing = EngineError("engine_not_running_here", name="piper")
    with pytest.raises(openai.APIStatusError, match="piper"):
        await tool.audio.speech.create(model="tts-1", voice="alloy", input="hi", response_format="wav")


async def test_speech_that_breaks_off_cannot_be_taken_for_whole(
    tool: openai.AsyncOpenAI, daemon: FakeDaemon
) -> None:
    daemon.break_after_first_chunk = EngineError("engine_not_running_here", name="piper")
    with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
        answer = await tool.audio.speech.create(model="t", voice="a", input="hi", response_format="wav")
        answer.read()
