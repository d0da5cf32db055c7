"""The embedded engines, at work: none of them writes what it hears, answers or speaks into its log."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ondam.audio import resampled
from ondam.control.sound import decode, encode
from ondam.measure.clips import clips
from ondam.types import HEARING_RATE_HZ
from tests.privacy.search import search
from tests.scenarios.house import House

pytestmark = pytest.mark.engines

ASKED = "Zanzibarquokka Wombatflurry"


async def test_no_file_of_the_daemon_or_its_engines_holds_a_word_or_a_sound(resident: House) -> None:
    heard = resampled(decode(clips("en")[0].wav, 10**7), HEARING_RATE_HZ)
    said: list[str] = [ASKED]
    async with resident.client() as client:
        for speak in (True, False):
            turn = await client.ask(f"What is {ASKED}?", speak=speak)
            said += [turn["reply"] or ""]
        spoken, _ = await client.wav_turn(encode(heard), "en")
        said += [spoken["transcript"] or "", spoken["reply"] or ""]
        await client.say("Xylophonquark, he said.", "en")
        await client.transcribe(encode(heard))
        logs = [
            await client.engine_log(engine["name"], 10_000) for engine in (await client.status())["engines"]
        ]
    # Long words and pairs of shorter ones: none of them is a log's own.
    words = [text.split() for text in said]
    wanted = [f"{one} {other}" for text in words for one, other in pairwise(text)]
    wanted = [pair for pair in wanted if len(pair) >= 8] + ["Zanzibarquokka", "Wombatflurry", "Xylophonquark"]
    assert len(wanted) > 10
    # The home has what it printed, HOME and TMPDIR too; in the data folder, which others share, engines write
    # into their caches alone.
    places = resident.places
    assert search(wanted, [heard.samples], resident.home, places.runtime, places.data / "caches") == set()
    assert not any(pair in log for pair in wanted for log in logs)
