"""The echo of a virtual room: what the speaker plays comes back into the microphone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.fakes.babble import noise
from tests.sound.rig import SoundRig

from ondam.audio.echocheck import EchoReport, Faults, check_echo
from ondam.audio.microphone import DeviceMicrophone
from ondam.audio.speaker import DeviceSpeaker
from ondam.types import HEARING_RATE_HZ, Audio

pytestmark = pytest.mark.sound

both_servers = pytest.mark.parametrize("rig", ["pulseaudio", "pipewire"], indirect=True)


def come_back(rig: SoundRig, delay_ms: int, attenuation_db: float) -> None:
    """From now on the microphone hears the speaker. The server adds some delay of its own."""
    rig.control(
        "load-module",
        "module-loopback",
        "source=speaker.monitor",
        "sink=micfeed",
        f"latency_msec={delay_ms}",
        "source_dont_move=true",
        "sink_dont_move=true",
    )
    end = time.monotonic() + 5
    while not (inputs := _inputs(rig)):
        assert time.monotonic() < end, "the way back did not appear"
        time.sleep(0.05)
    for number in inputs:
        rig.control("set-sink-input-volume", number, f"-{attenuation_db:g}dB")


def _inputs(rig: SoundRig) -> list[str]:
    """Streams into the microphone's side of the room."""
    rows = [line.split("\t") for line in rig.control("list", "short", "sink-inputs").splitlines()]
    return [row[0] for row in rows if row[1] == str(rig.devices("sinks")["micfeed"])]


async def measured() -> EchoReport:
    faults = Faults()
    microphone = DeviceMicrophone("default", on_fault=faults.of("microphone"))
    speaker = DeviceSpeaker("default", latency_ms=30, on_fault=faults.of("speaker"))
    try:
        return await check_echo(microphone, speaker, faults)
    finally:
        await microphone.close()
        await speaker.close()


@both_servers
@pytest.mark.parametrize(("delay_ms", "attenuation_db"), [(80, 12), (250, 30), (600, 12)])
async def test_the_echo_of_a_room_is_found_and_removed(
    rig: SoundRig, delay_ms: int, attenuation_db: float
) -> None:
    come_back(rig, delay_ms, attenuation_db)
    report = await measured()
    assert report.verdict == "cancelling", report
    assert report.delay_ms is not None
    assert delay_ms - 60 <= report.delay_ms <= delay_ms + 150
    assert report.echo_db == pytest.approx(-attenuation_db, abs=4)
    assert report.cancellation_db is not None and report.cancellation_db >= 12


async def test_a_speaker_that_nobody_hears_has_no_echo(rig: SoundRig) -> None:
    rig.say(Audio(noise(25, dbfs=-60), HEARING_RATE_HZ))  # else the microphone were muted
    report = await measured()
    assert report.verdict == "no_echo", report
    assert report.delay_ms is None
    assert report.noise_dbfs == pytest.approx(-60, abs=3)


def test_the_command_tells_it(rig: SoundRig, tmp_path: Path) -> None:
    come_back(rig, 80, 12)
    environment = {**os.environ, **rig.environment, "ONDAM_HOME": str(tmp_path), "ONDAM_LANGUAGE": "en"}
    done = subprocess.run(
        [sys.executable, "-m", "ondam", "doctor", "--echo", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdict"], told["ok"]) == (0, "cancelling", True), done
    assert 20 <= told["delay_ms"] <= 230
