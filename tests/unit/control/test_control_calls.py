"""Every call over a real socket, with the client that the commands use."""

from __future__ import annotations

import asyncio
import io
import wave
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from tests.unit.control.fake_daemon import FakeDaemon, turn, until

from ondam.control import sound, wire
from ondam.control.client import Client, call
from ondam.control.failure import status_of
from ondam.control.server import Server
from ondam.errors import AudioError, ConfigError, ControlError, EngineError, OndamError
from ondam.messages import Phrase, Phrases
from ondam.types import Audio, Language


def wav(samples: int = 1600, rate_hz: int = 16_000) -> bytes:
    return sound.encode(Audio(np.zeros(samples, np.int16), rate_hz))


async def test_status_arrives_as_the_daemon_gave_it(client: Client, daemon: FakeDaemon) -> None:
    assert await client.status() == daemon.status()


async def test_the_status_is_told_in_the_readers_language_and_else_in_the_daemons(
    server: Server, socket_path: Path, daemon: FakeDaemon
) -> None:
    languages: tuple[Language, ...] = ("ko", "en")
    for language in languages:
        async with Client(socket_path, language) as client:
            await client.status()
    connector = aiohttp.UnixConnector(str(socket_path))
    async with aiohttp.ClientSession("http://ondam", connector=connector) as other:
        await other.get("/api/status")
    assert daemon.read_in == [*languages, None]


async def test_each_command_reaches_the_daemon_with_its_arguments(client: Client, daemon: FakeDaemon) -> None:
    assert await client.ask("몇 시야?", speak=True) == turn()
    assert (await client.say("안녕", "ko"))["audio"] == {"seconds": 0.8}
    assert await client.listen(2.5) == turn()
    assert await client.set_mode("muted") == "muted"
    await client.press()
    await client.release()
    assert [await client.toggle(), await client.toggle()] == [True, False]
    await client.stop_speaking()
    assert [t["id"] for t in await client.turns(1)] == [3]
    await client.restart_engine("faster_whisper")
    assert (await client.switch({"llm.model": "other"}, keep=True))["kept"]
    assert await client.engine_log("faster_whisper", 5) == "loaded\nready\n"
    await client.shutdown()
    assert daemon.asked == [
        ("ask", "몇 시야?", True),
        ("say", "안녕", "ko"),
        ("listen", 2.5),
        ("set_mode", "muted"),
        ("press",),
        ("release",),
        ("toggle",),
        ("toggle",),
        ("stop_speaking",),
        ("turns", 1),
        ("restart_engine", "faster_whisper"),
        ("switch", {"llm.model": "other"}, True),
        ("engine_log", "faster_whisper", 5),
        ("shutdown",),
    ]


async def test_a_transcription_carries_text_engine_and_times(client: Client, daemon: FakeDaemon) -> None:
    heard = await client.transcribe(wav(8000), "ko", ["김하늘", "이 바다"])
    assert daemon.asked == [("transcribe", 8000, 16_000, "ko", ["김하늘", "이 바다"])]
    assert heard["text"] == "안녕하세요."
    assert heard["engine"] == "faster_whisper"
    assert heard["audio_s"] == 0.5
    assert (heard["engine_ms"], heard["queued_ms"]) == (150.0, 1.0)
    assert 0 <= heard["total_ms"] < 5000


async def test_a_turn_from_a_wav_gives_the_turn_and_the_answer_as_wav(
    client: Client, daemon: FakeDaemon
) -> None:
    done, answer = await client.wav_turn(wav(441, 44_100), "en", reset_history=True)
    assert done == turn()
    assert daemon.asked == [("wav_turn", 441, 44_100, "en", True)]
    with wave.open(io.BytesIO(answer)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (22_050, 1, 100)
        assert np.frombuffer(file.readframes(100), "<i2").tolist() == list(range(100))


async def test_a_wav_turn_may_have_settings_of_its_own(daemon: FakeDaemon, client: Client) -> None:
    settings = {"endpoint": {"mode": "silence"}, "drafts": {"most_per_turn": 0}}
    await client.wav_turn(wav(441, 44_100), "en", settings=settings)
    assert daemon.asked == [("wav_turn", 441, 44_100, "en", False, settings)]


async def test_settings_that_are_wrong_are_a_bad_request(daemon: FakeDaemon, client: Client) -> None:
    problems = Phrases((Phrase("problem_unknown_key", key="llm", near=""),))
    daemon.failing = ConfigError("config_problems", origin="settings", problems=problems)
    with pytest.raises(ControlError, match="llm: unknown key") as refused:
        await client.wav_turn(wav(441, 44_100), settings={"llm": {}})
    assert refused.value.code == "control_bad_request"


async def test_synthesis_keeps_the_rate_and_every_sample_of_the_voice(client: Client) -> None:
    spoken = await client.synthesize("안녕")
    assert spoken.rate_hz == 22_050
    assert spoken.seconds == 0.2
    assert np.frombuffer(spoken.pcm, "<i2").tolist() == [*range(2205), *[7] * 2205]


async def test_an_error_of_an_engine_is_the_same_exception_at_the_client(
    client: Client, daemon: FakeDaemon
) -> None:
    daemon.failing = EngineError("engine_not_running_here", name="piper")
    with pytest.raises(EngineError) as caught:
        await client.ask("hello")
    assert caught.value.code == "engine_not_running_here"
    assert caught.value.facts == {"name": "piper"}
    assert "piper" in caught.value.message("ko").text
    with pytest.raises(EngineError):
        await client.synthesize("hello")


async def test_what_is_wrong_with_a_request_is_told_in_the_readers_language(
    server: Server, socket_path: Path
) -> None:
    async with Client(socket_path, "ko") as client:
        with pytest.raises(ControlError) as caught:
            await client.listen(-1)
    assert str(caught.value.message("ko").text) == (
        "요청을 이해하지 못했습니다: timeout_s: 0.0보다 커야 합니다(입력: -1)."
    )


@pytest.mark.parametrize(
    ("failing", "kind"),
    [
        (AudioError("file_missing", path=Path("/x")), AudioError),
        (OndamError("heard_nothing", seconds=1), OndamError),
    ],
)
async def test_every_layer_keeps_its_class(
    client: Client, daemon: FakeDaemon, failing: OndamError, kind: type[OndamError]
) -> None:
    daemon.failing = failing
    with pytest.raises(OndamError) as caught:
        await client.stop_speaking()
    assert type(caught.value) is kind
    assert str(caught.value) == str(failing)


async def test_no_daemon_says_what_to_type(socket_path: Path) -> None:
    async with Client(socket_path) as client:
        with pytest.raises(ControlError) as caught:
            await client.status()
    assert caught.value.code == "daemon_not_running"
    assert caught.value.message("ko").next == "ondam up"
    assert caught.value.exit_code == 4


async def test_the_systems_daemon_is_started_by_systemd_and_not_by_hand(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.places.MACHINE_RUNTIME", socket_path.parent)
    monkeypatch.setenv("SUDO_UID", "1000")
    async with Client(socket_path) as client:
        with pytest.raises(ControlError) as caught:
            await client.status()
    assert caught.value.message("en").next == "sudo systemctl start ondam"


async def test_the_synchronous_call_gives_and_raises_the_same(
    server: Server, daemon: FakeDaemon, socket_path: Path
) -> None:
    def synchronous() -> wire.Status:
        return call(socket_path, lambda client: client.status())

    assert await asyncio.to_thread(synchronous) == daemon.status()
    await server.stop()
    with pytest.raises(ControlError, match="not running"):
        await asyncio.to_thread(synchronous)


async def test_a_daemon_that_ends_during_a_call_is_told_from_one_that_is_not_there(
    client: Client, server: Server, daemon: FakeDaemon
) -> None:
    daemon.hold = asyncio.Event()
    waiting = asyncio.create_task(client.listen())
    await until(lambda: bool(daemon.asked))
    await server.stop()
    with pytest.raises(ControlError) as caught:
        await waiting
    assert caught.value.code == "daemon_gone"


async def test_a_caller_that_leaves_ends_its_call_in_the_daemon(client: Client, daemon: FakeDaemon) -> None:
    daemon.hold = asyncio.Event()
    waiting = asyncio.create_task(client.listen())
    await until(lambda: bool(daemon.asked))
    waiting.cancel()
    async with asyncio.timeout(2):
        await daemon.cancelled.wait()


async def test_events_begin_with_a_snapshot_and_go_on_with_changes(
    client: Client, daemon: FakeDaemon
) -> None:
    events = client.events()
    assert await anext(events) == {"type": "snapshot", "status": daemon.status()}
    daemon.broadcast.publish({"type": "state", "session": "s", "state": "hearing"})
    daemon.broadcast.publish({"type": "fault_cleared", "code": "microphone_missing"})
    assert await anext(events) == {"type": "state", "session": "s", "state": "hearing"}
    assert await anext(events) == {"type": "fault_cleared", "code": "microphone_missing"}
    await events.aclose()
    await until(lambda: daemon.broadcast.subscribers == 0)


async def test_a_subscriber_learns_that_the_daemon_ended(client: Client, daemon: FakeDaemon) -> None:
    events = client.events()
    await anext(events)
    daemon.broadcast.close()
    with pytest.raises(ControlError) as caught:
        await anext(events)
    assert caught.value.code == "daemon_gone"


async def test_stopping_ends_subscriptions_and_removes_the_socket(
    client: Client, server: Server, socket_path: Path
) -> None:
    events = client.events()
    await anext(events)
    async with asyncio.timeout(3):
        await server.stop()
        with pytest.raises(ControlError):
            await anext(events)
    assert not socket_path.exists()  # noqa: ASYNC240 - one look at a local file


async def test_a_mode_that_there_is_not_is_refused_with_the_nearest(
    server: Server, daemon: FakeDaemon, socket_path: Path
) -> None:
    for wanted, near in (("mute", '; did you mean "muted"?'), ("sideways", "")):
        async with Client(socket_path) as client:
            with pytest.raises(ControlError) as caught:
                await client.set_mode(wanted)  # type: ignore[arg-type]  # what another client may send
        assert caught.value.message("en").text == (
            "Ondam did not understand the request: mode: input should be 'open', 'name', 'push', 'muted' or"
            f" 'unmuted' (found '{wanted}'){near}."
        )
    assert daemon.asked == []


async def test_modes_are_for_who_may_command_and_muted_is_a_conflict(
    client: Client, daemon: FakeDaemon
) -> None:
    for route in (wire.MODE, wire.PRESS, wire.RELEASE, wire.TOGGLE):
        assert (route.method, route.permission) == ("POST", "command")
    daemon.failing = ControlError("listen_muted")
    with pytest.raises(ControlError) as caught:
        await client.press()
    assert caught.value.message("en").next == "ondam mode open"
    assert status_of(caught.value) == 409
