"""A sound is played, and what comes back is told."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.fakes.room import Room
from tests.fakes.virtual_time import virtual_time
from tests.unit.audio.test_duplex import clock

from ondam.audio.echo import level_db
from ondam.audio.echocheck import EchoReport, Faults, check_echo, probe_sound
from ondam.errors import AudioError
from ondam.pipeline.ports import Microphone


async def checked(
    room: Room, faults: Faults | None = None, microphone: Microphone | None = None
) -> EchoReport:
    return await check_echo(microphone or room.microphone, room.speaker, faults or Faults(), clock=clock)


@pytest.mark.parametrize(("delay_ms", "attenuation_db"), [(80, 12), (600, 30)])
def test_the_delay_the_level_and_the_cancellation_of_an_echo_are_told(
    delay_ms: float, attenuation_db: float
) -> None:
    @virtual_time
    async def run() -> None:
        shares: list[float] = []
        room = Room(clock=clock, delay_ms=delay_ms, attenuation_db=attenuation_db)
        report = await check_echo(
            room.microphone, room.speaker, Faults(), clock=clock, progress=shares.append
        )
        assert report.verdict == "cancelling"
        assert report.delay_ms == pytest.approx(delay_ms, abs=2)
        assert report.echo_db == pytest.approx(-attenuation_db, abs=2)
        assert report.cancellation_db is not None and report.cancellation_db >= 20
        assert report.noise_dbfs == pytest.approx(-80, abs=1)
        assert shares == sorted(shares) and shares[-1] == 1

    run()


@virtual_time
async def test_without_an_echo_there_is_no_delay_to_tell() -> None:
    report = await checked(Room(clock=clock, attenuation_db=float("inf")))
    assert (report.verdict, report.delay_ms, report.echo_db, report.cancellation_db) == (
        "no_echo",
        None,
        None,
        None,
    )


@virtual_time
async def test_a_fault_of_a_device_is_told_as_it_is() -> None:
    faults = Faults()
    faults.of("speaker")("speaker_missing", name="Pebble")
    with pytest.raises(AudioError, match="There is no speaker"):
        await checked(Room(clock=clock), faults)


@virtual_time
async def test_a_device_that_is_lost_meanwhile_ends_it() -> None:
    faults = Faults()
    checking = asyncio.create_task(checked(Room(clock=clock), faults))
    await asyncio.sleep(3)
    assert not checking.done()
    faults.of("microphone")("microphone_lost", name="Webcam")
    with pytest.raises(AudioError, match="is gone"):
        await checking


@virtual_time
async def test_a_fault_that_is_over_or_only_a_notice_ends_nothing() -> None:
    faults = Faults()
    faults.of("speaker")("speaker_missing", name="Pebble")
    faults.of("speaker")(None)
    faults.of("microphone")("microphone_silent", name="Webcam")
    assert (await checked(Room(clock=clock), faults)).verdict == "cancelling"


@virtual_time
async def test_a_muted_microphone_is_told_and_not_taken_for_a_headset() -> None:
    room = Room(clock=clock, attenuation_db=float("inf"), noise_dbfs=-200)
    with pytest.raises(AudioError, match="It is muted"):
        await checked(room)


@virtual_time
async def test_a_microphone_that_gives_nothing_is_told() -> None:
    from ondam.audio import NoMicrophone

    room = Room(clock=clock)
    with pytest.raises(AudioError, match="delivers no sound"):
        await checked(room, microphone=NoMicrophone())


def test_the_sound_is_as_loud_as_an_answer_and_begins_softly() -> None:
    sound = probe_sound(7, 48_000)
    assert len(sound) == 7 * 48_000
    assert level_db(sound) == pytest.approx(-20, abs=1)
    assert level_db(sound[:12_000]) < level_db(sound[36_000:48_000]) - 6
    assert np.array_equal(sound, probe_sound(7, 48_000))
