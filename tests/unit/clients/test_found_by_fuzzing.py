"""Inputs of script/fuzz that once made our clients raise what nobody expects."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from ondam.clients.chat_chunk import chunk
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.errors import EngineError


@pytest.mark.parametrize("odd", ["{}", "[]", "[{}]", "1", "true"])
def test_an_error_whose_type_is_no_text_is_an_error(odd: str) -> None:
    got = chunk(f'{{"error": {{"message": "no", "type": {odd}, "code": {odd}}}}}')
    assert (got.error, got.overfull) == ("no", None)


async def test_a_voices_last_event_that_is_no_object_is_a_broken_frame(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"type": "audio-stop", "data": {"context": [1]}}\n')
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "s"):
        with pytest.raises(EngineError) as caught:
            async for _ in WyomingSynthesizer(f"unix://{tmp_path / 's'}").synthesize("Hi.", "en"):
                pass
    assert caught.value.code == "engine_broken_frame"
