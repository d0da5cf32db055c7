"""Two engines that pip could not put into one environment, side by side under one daemon.

Their models stand in for the real ones: one hears the same sentence in everything, the other speaks noise
until it is cut.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import psutil
import pytest

from ondam.control import wire
from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.places import places
from tests.fakes.standins import made_inside
from tests.scenarios.house import House, engine

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

HEARD = "지금 몇 시예요? 온담, 불을 켜 줘. 고마워."


async def test_two_engines_whose_packages_collide_hear_and_speak_in_one_house(tmp_path: Path) -> None:
    house = House(
        tmp_path / "house",
        {
            "language": "ko",
            "stt.engine": "qwen_asr",
            "stt.model": str(made_inside("qwen_asr", places(), "--ends")),
            "tts.engine": "qwen_tts",
            "tts.model": str(made_inside("qwen_tts", places())),
            "tts.spare": "",
        },
    )
    house.open()
    try:
        status = await house.ready()
        running = [engine(status, name) for name in ("qwen_asr", "qwen_tts")]
        for one in running:
            assert (one["state"], one["device"], one["loads"], one["faults"]) == ("ready", "cpu", 1, [])
        reports = [json.loads(house.places.engine_report(one["name"]).read_bytes()) for one in running]
        assert [report["versions"]["transformers"] for report in reports] == ["4.57.6", "4.57.3"]
        providers = [devices for report in reports for devices in report["providers"].values()]
        assert providers == [["cpu"]] * len(providers)

        async with house.client() as client:
            turn, wav = await client.wav_turn(clips("ko")[0].wav, "ko", reset_history=True)
            assert turn["transcript"] == HEARD
            assert turn["outcome"] in {"answered", "no_answer"}
            assert np.abs(decode(wav, 10**8).samples).max() > 1000

            # It never ends by itself: 1.5 s, six syllables of 0.3 s and a full stop are all that it gets.
            speech = await client.synthesize("안녕하십니까.", "ko")
            samples = np.frombuffer(speech.pcm, "<i2")
            assert speech.rate_hz == 24_000
            assert len(samples) / speech.rate_hz == pytest.approx(1.5 + 6 * 0.3 + 0.12, abs=0.1)
            assert samples[-1] == 0

        # Still the same processes, with the same weights.
        now = [engine(await _status(house), one["name"]) for one in running]
        assert [(one["pid"], one["loads"]) for one in now] == [(one["pid"], 1) for one in running]
        assert all(psutil.pid_exists(one["pid"] or 0) for one in now)
    finally:
        assert house.close() == 0


async def _status(house: House) -> wire.Status:
    async with house.client() as client:
        return await client.status()
