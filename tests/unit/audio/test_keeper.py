from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.unit.audio.fake_card import FakeCard, PortAudioError, Told
from tests.unit.audio.test_speaker import speaking, with_server

from ondam.audio import portaudio
from ondam.audio.devices import Device
from ondam.errors import AudioError

DEVICE = Device("speaker", "Card", "Card", "portaudio", default=True)


def failing_at(card: FakeCard, monkeypatch: pytest.MonkeyPatch, calls: set[int], error: Exception) -> None:
    """Let these calls of ``query_devices``, counted from 0, raise ``error``."""
    real, made = card.query_devices, iter(range(1000))

    def query_devices(index: int | None = None) -> Any:
        if next(made) in calls:
            raise error
        return real(index)

    monkeypatch.setattr(card, "query_devices", query_devices)


def test_devices_that_portaudio_cannot_list_are_a_fault_with_a_name(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_at(card, monkeypatch, {0}, PortAudioError("no devices"))
    with pytest.raises(AudioError, match="no devices"):
        portaudio.list_devices()


@pytest.mark.parametrize("call", [0, 1])
def test_a_device_that_portaudio_cannot_describe_is_a_fault_and_is_looked_for_anew(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    card.plug("Card", outputs=2)
    card._initialize()
    failing_at(card, monkeypatch, {call}, PortAudioError("Error querying device 0"))
    before = card.refreshes
    with pytest.raises(AudioError) as caught:
        portaudio.open_stream(DEVICE, lambda *_: pytest.fail("opened"), 48_000)
    assert caught.value.code == "portaudio_failed"
    assert card.refreshes == before + 1


@pytest.mark.parametrize("call", [0, 1])
async def test_a_device_that_portaudio_could_not_describe_once_is_opened_the_next_time(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    with_server(card)
    failing_at(card, monkeypatch, {call}, PortAudioError("Error querying device 0"))
    async with speaking(card) as mouth:
        await card.run(1000)
        assert mouth.told == ["portaudio_failed", None]
        assert len(card.streams) == 1


async def test_what_nobody_thought_of_is_logged_and_told_and_the_device_is_tried_again(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_server(card)
    failing_at(card, monkeypatch, {0}, ZeroDivisionError("a surprise"))
    with caplog.at_level(logging.ERROR):
        async with speaking(card) as mouth:
            await card.run(1000)
            assert mouth.told == ["portaudio_failed", None]
            assert len(card.streams) == 1
    assert "ZeroDivisionError: a surprise" in caplog.text


async def test_a_stream_that_is_lost_to_a_surprise_is_closed_before_the_next_is_opened(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_server(card)
    async with speaking(card) as mouth:
        await card.run(500)
        stream = card.streams[0]
        with monkeypatch.context() as broken:
            broken.setattr(mouth.speaker._stream_clock, "observe", lambda *_: 1 / 0)
            await card.run(300)
        await card.run(1000)
        assert mouth.told == ["portaudio_failed", None]
        assert stream.closed
        assert len(card.streams) == 2
    assert "ZeroDivisionError" in caplog.text


async def test_a_listener_that_fails_does_not_take_the_device_with_him(
    card: FakeCard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Told, code: str | None, /, **_facts: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Told, "__call__", fail)
    async with speaking(card):
        await card.run(500)
        with_server(card)
        await card.run(1000)
        assert len(card.streams) == 1
    assert "ZeroDivisionError" in caplog.text
