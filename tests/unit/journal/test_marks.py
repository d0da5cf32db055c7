"""Stages add up; the origin is the last voiced 10 ms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ondam.journal.marks import MARKS, EngineTimes, Marks, last_voiced_sample, stages_ms

MS = 1_000_000


def marks() -> Marks:
    made = Marks()
    for name, at_ms in {
        "last_voiced": 1000,
        "endpoint": 1600,
        "stt_sent": 1602,
        "stt_final": 1760,
        "llm_sent": 1761,
        "llm_first_token": 1830,
        "first_clause": 1890,
        "tts_sent": 1892,
        "tts_first_audio": 1970,
        "dac_first_sample": 2000,
    }.items():
        made.set(name, at_ms * MS)  # type: ignore[arg-type]
    return made


def test_stages_add_up_to_first_audio_and_ipc_is_what_no_engine_accounts_for() -> None:
    stages = stages_ms(
        marks(), EngineTimes(stt=150, llm_first_token=66, llm_first_clause=126, tts_first_audio=75)
    )
    assert stages == {
        "endpoint": 600,
        "ipc": pytest.approx(1000 - 600 - 150 - 66 - 60 - 75 - 30),
        "stt": 150,
        "llm_first_token": 66,
        "first_clause": 60,
        "tts_first_audio": 75,
        "playback_buffer": 30,
    }
    assert sum(v for v in stages.values() if v is not None) == pytest.approx(1000)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=2))
def test_what_is_left_between_the_stages_is_never_less_than_nothing(after_ns: list[int]) -> None:
    """A draft that was ready: endpoint and playback alone, in fractions of a ms that no float holds."""
    endpoint, heard = after_ns[0], sum(after_ns)
    at_ns = dict.fromkeys(MARKS, 0) | {"endpoint": endpoint, "dac_first_sample": heard}
    stages = stages_ms(Marks(at_ns), EngineTimes())
    assert stages["ipc"] is not None
    assert str(round(stages["ipc"], 2)) == "0.0"


def test_an_engine_that_does_not_tell_its_time_is_measured_from_outside() -> None:
    stages = stages_ms(marks(), EngineTimes())
    assert stages["stt"] == 158
    assert stages["llm_first_token"] == 69
    assert stages["first_clause"] == 60
    assert stages["tts_first_audio"] == 78


def test_what_was_written_before_the_first_token_was_read_is_not_waited_for_twice() -> None:
    """A turn of a busy machine: the token left the engine 256 ms after it was asked, and was read after 433;
    the clause was written meanwhile."""
    at_ms = {
        "last_voiced": 0,
        "endpoint": 643,
        "stt_sent": 132,
        "stt_final": 448,
        "llm_sent": 449,
        "llm_first_token": 882,
        "first_clause": 1316,
        "tts_sent": 1317,
        "tts_first_audio": 1566,
        "dac_first_sample": 1577,
    }
    stages = stages_ms(
        Marks({name: ms * MS for name, ms in at_ms.items()}),  # type: ignore[misc]
        EngineTimes(stt=301, llm_first_token=256, llm_first_clause=840, tts_first_audio=246),
    )
    assert stages == {
        "endpoint": 643,
        "ipc": pytest.approx(1577 - 643 - 239 - 434 - 246 - 11),
        "stt": 0,
        "llm_first_token": 239,
        "first_clause": 434,
        "tts_first_audio": 246,
        "playback_buffer": 11,
    }


def test_a_turn_that_never_sounded_has_no_ipc() -> None:
    cut = Marks({"last_voiced": 0, "endpoint": 600 * MS})
    assert stages_ms(cut, EngineTimes())["ipc"] is None


def test_a_mark_is_set_once() -> None:
    once = Marks()
    once.set("endpoint", 5)
    once.set("endpoint", 9)
    assert once.at_ns == {"endpoint": 5}


def test_a_typed_question_counts_from_when_it_was_sent_on() -> None:
    typed = Marks({"llm_sent": 5 * MS, "llm_first_token": 70 * MS})
    assert typed.origin == "llm_sent"
    assert typed.ms("llm_first_token", typed.origin) == 65


def test_last_voice_is_the_end_of_the_last_block_above_minus_40_db() -> None:
    rng = np.random.default_rng(7)
    samples = np.zeros(16_000, np.int16)
    samples[1600:8000] = (rng.normal(0, 8000, 6400)).clip(-32000, 32000).astype(np.int16)
    samples[8000:9600] = rng.normal(0, 20, 1600).astype(np.int16)  # room: −52 dB
    samples[9600:9760] = rng.normal(0, 200, 160).astype(np.int16)  # −32 dB: still voice
    assert last_voiced_sample(samples) == 9760


def test_silence_has_no_last_voice() -> None:
    assert last_voiced_sample(np.zeros(16_000, np.int16)) == 0
    assert last_voiced_sample(np.zeros(100, np.int16)) == 0
