from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.kit.conftest import Serve
from tests.unit.kit.models import FORM, ScriptedStt

from ondam_engines.kit.limits import LIMITS

CHUNK = b"\1\0" * 100


async def test_a_transcript_carries_what_the_engine_measured(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send(
        "transcribe", {"language": "en", "transcript_names": ["Kim"], "transcript_terms": ["VRAM"]}
    )
    await client.send_audio(CHUNK, CHUNK)
    event = await client.next()
    assert (event.type, event.data["text"], event.data["language"]) == ("transcript", "400 en Kim,VRAM", "en")
    told = event.data["context"]["ondam"]
    assert told.keys() == {"engine_ms", "queued_ms", "audio_s", "no_speech_prob", "avg_logprob"}
    assert told["audio_s"] == 200 / 16_000
    assert (told["no_speech_prob"], told["avg_logprob"]) == (0.25, -0.5)
    assert 0 <= told["engine_ms"] < 5_000


async def test_without_transcribe_the_language_of_the_launch_counts(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send_audio(CHUNK)
    assert (await client.next()).data["text"] == "200 ko "


async def test_a_region_is_no_other_language(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send("transcribe", {"language": "en_US"})
    await client.send_audio(CHUNK)
    assert (await client.next()).data["language"] == "en"


async def test_one_connection_may_ask_again_after_its_answer(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send("transcribe", {"language": "en", "transcript_names": ["Kim"]})
    await client.send_audio(CHUNK)
    await client.next()
    await client.send_audio(CHUNK, CHUNK)
    # Nothing of the first request is left in the second.
    assert (await client.next()).data["text"] == "400 ko "


async def test_no_audio_between_start_and_stop_is_an_empty_request(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    await client.send_audio()
    assert (await client.next()).data["text"] == "0 ko "


@pytest.mark.parametrize(
    ("kind", "data", "payload", "code"),
    [
        ("transcribe", {"language": "xx"}, None, "unsupported_language"),
        ("transcribe", {"language": 7}, None, "bad_request"),
        ("transcribe", {"transcript_names": "Kim"}, None, "bad_request"),
        ("transcribe", {"transcript_names": ["x" * 101]}, None, "bad_request"),
        ("transcribe", {"transcript_terms": ["x"] * 201}, None, "bad_request"),
        ("audio-start", {**FORM, "rate": 48_000}, None, "bad_request"),
        ("audio-chunk", {**FORM, "channels": 2}, CHUNK, "bad_request"),
        ("audio-chunk", FORM, b"odd", "bad_request"),
        ("audio-stop", {}, None, "bad_request"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_and_the_end_of_the_connection(
    serve: Serve, stt: ScriptedStt, kind: str, data: dict[str, Any], payload: bytes | None, code: str
) -> None:
    client = await (await serve(stt))()
    await client.send(kind, data, payload)
    event = await client.next()
    assert (event.type, event.data["code"]) == ("error", code)
    assert "\n" not in event.data["text"]
    assert await client.rest() == b""


async def test_audio_over_the_bound_is_too_long(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, audio_s=0.02))
    client = await connect()
    await client.send_audio(b"\0" * 640)
    assert (await client.next()).type == "transcript"
    await client.send_audio(b"\0" * 642)
    assert (await client.next()).data["code"] == "too_long"


async def test_a_model_that_fails_fails_one_request_only(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    client = await connect()
    stt.failure = RuntimeError("two\nlines")
    await client.send_audio(CHUNK)
    event = await client.next()
    assert (event.data["code"], event.data["text"]) == ("failed", "RuntimeError: two lines")
    assert await client.rest() == b""
    stt.failure = None
    client = await connect()
    await client.send_audio(CHUNK)
    assert (await client.next()).type == "transcript"


async def test_ping_and_describe_are_answered_while_a_job_runs(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    stt.gate.clear()
    client = await connect()
    await client.send_audio(CHUNK)
    await asyncio.to_thread(stt.started.wait, 5)
    other = await connect()
    for asked in (client, other):
        await asked.send("ping", {"text": "안녕"})
        assert (await asked.next()).data == {"text": "안녕"}
        await asked.send("describe")
        models = (await asked.next()).data["asr"][0]["models"]
        assert models[0]["languages"] == ["ko", "en"]
    stt.gate.set()
    assert (await client.next()).type == "transcript"


async def test_a_second_request_waits_its_turn(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    stt.gate.clear()
    first, second = await connect(), await connect()
    await first.send_audio(CHUNK)
    await asyncio.to_thread(stt.started.wait, 5)
    await second.send_audio(CHUNK)
    # Answered on the same connection, so that the request before it has been taken in.
    await second.send("ping")
    assert (await second.next()).type == "pong"
    released_at = time.monotonic()
    stt.gate.set()
    assert (await first.next()).data["context"]["ondam"]["queued_ms"] < 1e3 * (
        time.monotonic() - released_at
    ) + 5e3
    assert (await second.next()).data["context"]["ondam"]["queued_ms"] > 0


async def test_two_requests_on_one_connection_at_once_are_refused(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    stt.gate.clear()
    await client.send_audio(CHUNK)
    await client.send_audio(CHUNK)
    assert (await client.next()).data["code"] == "bad_request"
    assert await asyncio.to_thread(stt.stopped.wait, 5)


async def test_the_queue_is_bounded(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, queue=2))
    stt.gate.clear()
    clients = [await connect() for _ in range(4)]
    for client in clients[:3]:
        await client.send_audio(CHUNK)
        await client.send("ping")
        await client.next()
    await clients[3].send_audio(CHUNK)
    assert (await clients[3].next()).data["code"] == "failed"
    stt.gate.set()
    for client in clients[:3]:
        assert (await client.next()).type == "transcript"


async def test_clients_that_left_do_not_fill_the_queue(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, queue=1))
    stt.gate.clear()
    # This one ignores that its client leaves, until the gate opens.
    stt._stop = stt.stopped.set  # type: ignore[method-assign]
    gone = await connect()
    await gone.send_audio(CHUNK)
    await asyncio.to_thread(stt.started.wait, 5)
    gone.leave()
    assert await asyncio.to_thread(stt.stopped.wait, 5)
    for _ in range(5):
        stt.stopped.clear()
        impatient = await connect()
        await impatient.send_audio(CHUNK)
        await impatient.send("ping")
        assert (await impatient.next()).type == "pong"
        impatient.leave()
    client = await connect()
    await client.send("ping")
    await client.next()
    await client.send_audio(CHUNK)
    await client.send("ping")
    assert (await client.next()).type == "pong"
    stt.gate.set()
    assert (await client.next()).type == "transcript"


async def test_a_client_that_leaves_stops_its_job_within_100_ms(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt)
    took_s = []
    for _ in range(5):
        for event in (stt.gate, stt.started, stt.stopped):
            event.clear()
        client = await connect()
        await client.send_audio(CHUNK)
        await asyncio.to_thread(stt.started.wait, 5)
        left_at = time.monotonic()
        client.leave()
        assert await asyncio.to_thread(stt.stopped.wait, 5)
        took_s.append(time.monotonic() - left_at)
    # A busy machine may stumble; a server that does not notice stumbles every time.
    assert sorted(took_s)[2] < 0.1


async def test_half_a_frame_and_the_end_stops_the_job_like_leaving(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt))()
    stt.gate.clear()
    await client.send_audio(CHUNK)
    await asyncio.to_thread(stt.started.wait, 5)
    client.writer.write(b'{"type": "pi')
    client.writer.write_eof()
    assert await asyncio.to_thread(stt.stopped.wait, 5)
    assert await client.rest() == b""


async def test_a_client_that_stalls_in_the_middle_of_its_audio_is_told_so(
    serve: Serve, stt: ScriptedStt
) -> None:
    client = await (await serve(stt, replace(LIMITS, stall_s=0.05)))()
    await client.send("audio-start", FORM)
    event = await client.next()
    assert event.data == {"text": "nothing came for 0.05 s", "code": "bad_request"}


async def test_a_client_that_has_asked_for_nothing_may_stay(serve: Serve, stt: ScriptedStt) -> None:
    client = await (await serve(stt, replace(LIMITS, stall_s=0.05)))()
    await asyncio.sleep(0.2)
    await client.send("ping")
    assert (await client.next()).type == "pong"


async def test_held_audio_is_bounded_over_all_clients(serve: Serve, stt: ScriptedStt) -> None:
    connect = await serve(stt, replace(LIMITS, held_bytes=500))
    first, second = await connect(), await connect()
    await first.send("audio-chunk", FORM, b"\0" * 400)
    await first.send("ping")
    await first.next()
    await second.send("audio-chunk", FORM, b"\0" * 200)
    assert (await second.next()).data["code"] == "failed"
    await first.send("audio-stop")
    assert (await first.next()).data["text"] == "400 ko "
