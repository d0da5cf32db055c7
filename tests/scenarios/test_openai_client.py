"""Another tool on the machine uses the resident models with OpenAI's own client; no model is loaded twice."""

from __future__ import annotations

import io
from collections.abc import Iterator

import httpx2
import openai
import pytest

from ondam.control.sound import decode
from ondam.measure.clips import clips
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]


@pytest.fixture
def tool(resident: House) -> Iterator[openai.OpenAI]:
    transport = httpx2.HTTPTransport(uds=str(resident.places.control_socket))
    with (
        httpx2.Client(transport=transport) as http,
        openai.OpenAI(base_url="http://ondam/v1", api_key="none", http_client=http) as client,
    ):
        yield client


def test_chat_speech_and_transcription_are_served_by_the_resident_engines(
    resident: House, tool: openai.OpenAI
) -> None:
    whole = tool.chat.completions.create(
        model="any", messages=[{"role": "user", "content": "Say hello."}], max_tokens=8
    )
    assert whole.choices[0].message.content
    pieces = [
        chunk.choices[0].delta.content or ""
        for chunk in tool.chat.completions.create(
            model="any", messages=[{"role": "user", "content": "Say hello."}], max_tokens=8, stream=True
        )
        if chunk.choices
    ]
    assert len(pieces) > 2
    assert "".join(pieces)

    speech = tool.audio.speech.create(model="any", voice="any", input="The meeting starts at three.").read()
    assert 1 < decode(speech, 10**7).seconds < 4

    clip = clips("en")[0]
    question = io.BytesIO(clip.wav)
    question.name = "question.wav"
    heard = tool.audio.transcriptions.create(model="any", file=question, language="en")
    assert heard.text == clip.words


async def test_afterwards_every_engine_has_still_loaded_its_weights_once(resident: House) -> None:
    async with resident.client() as client:
        status = await client.status()
    for name in ("faster_whisper", "llama_server", "piper"):
        assert engine(status, name)["loads"] == 1
        assert engine(status, name)["restarts"] == 0
