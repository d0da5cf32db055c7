"""``ondam doctor --echo``, with what was measured given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Ondam

from ondam.audio.echocheck import EchoReport
from ondam.cli import doctor_echo

REMOVED = EchoReport("cancelling", "Webcam", "Pebble", 82.4, -13.2, 31.6, -71.0)
NONE = EchoReport("no_echo", "Webcam", "Pebble", None, None, None, -71.0)
STAYS = EchoReport("half_duplex", "Webcam", "Pebble", 82.4, -3.0, 4.2, -71.0)


def measured(monkeypatch: pytest.MonkeyPatch, report: EchoReport) -> None:
    async def measure(_config: object) -> EchoReport:
        return report

    monkeypatch.setattr(doctor_echo, "measure", measure)


async def test_an_echo_that_is_removed_is_well(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, REMOVED)
    done = await ondam("doctor", "--echo")
    assert done.code == 0
    assert done.out.splitlines() == [
        "✓ Ondam can hear you while it speaks: its own voice is taken out of the microphone.",
        "    speaker Pebble, microphone Webcam",
        "    delay: 82 ms",
        "    level of the echo: -13 dB of what is played",
        "    cancellation: 32 dB",
    ]
    assert "seven seconds" in done.err


async def test_json_holds_the_figures(ondam: Ondam, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, REMOVED)
    done = await ondam("doctor", "--echo", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {
        "ok": True,
        "verdict": "cancelling",
        "microphone": "Webcam",
        "speaker": "Pebble",
        "delay_ms": 82.4,
        "echo_db": -13.2,
        "cancellation_db": 31.6,
        "noise_dbfs": -71.0,
        "text": "Ondam can hear you while it speaks: its own voice is taken out of the microphone.",
        "next": "",
    }


async def test_no_echo_is_well_and_says_what_else_it_may_be(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(monkeypatch, NONE)
    done = await ondam("doctor", "--echo")
    assert done.code == 0
    assert "as with a headset" in done.out
    assert "turn up the volume" in done.out
    assert "delay" not in done.out


async def test_an_echo_that_stays_is_not_well_and_there_is_something_to_do(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    measured(monkeypatch, STAYS)
    done = await ondam("doctor", "--echo")
    assert done.code == 1
    assert done.out.startswith("✗ 마이크에 들어온 온담의 목소리를 충분히 제거할 수 없습니다.")
    assert "→ 조용한 곳에서" in done.out


async def test_who_switched_it_off_is_reminded(
    ondam: Ondam, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ondam.places import places

    file = places().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[audio]\necho = "off"\n')
    measured(monkeypatch, REMOVED)
    assert "→ It is switched off" in (await ondam("doctor", "--echo")).out


async def test_without_a_device_there_is_nothing_to_measure(ondam: Ondam, home: Path) -> None:
    from ondam.places import places

    file = places().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[audio]\nspeaker = "none"\n')
    done = await ondam("doctor", "--echo", "--json")
    assert done.code == 7
    assert done.json["error"]["code"] == "doctor_echo_no_device"
    assert 'audio.speaker is "none"' in done.json["error"]["text"]
