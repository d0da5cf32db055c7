"""B15: no first syllable is lost, no sample is given to two utterances."""

from __future__ import annotations

import numpy as np
import pytest

from ondam.config import defaults, load
from ondam.dialog.events import (
    Pause,
    SpeechResumed,
    SpeechStarted,
    SpeechSure,
    VoiceFaded,
    VoiceFell,
    VoiceNoticed,
)
from ondam.pipeline.capture import Capture
from ondam.pipeline.detect import Detector
from ondam.types import Block, Samples

BLOCK = 160


def ramp(first: int, blocks: int) -> list[Block]:
    """Blocks in which every sample's value is its running number: a lost or doubled one shows."""
    return [
        Block(np.arange(first + i * BLOCK, first + (i + 1) * BLOCK).astype(np.int16), first + i * BLOCK, i)
        for i in range(blocks)
    ]


class Script:
    """A voice activity detector that says what the script says, frame by frame."""

    frame = 512

    def __init__(self, *probabilities: float) -> None:
        self.left = list(probabilities)

    def __call__(self, frame: Samples) -> float:
        return self.left.pop(0) if self.left else 0.0

    def reset(self) -> None:
        pass


def test_b15_an_utterance_holds_the_pre_roll_and_every_sample_once() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    for block in ramp(0, 100):
        capture.add(block)
    capture.open()
    for block in ramp(16_000, 20):
        capture.add(block)
    samples = capture.close().samples
    assert samples[0] == 16_000 - 300 * 16
    assert np.array_equal(samples, np.arange(11_200, 19_200).astype(np.int16))


def test_b15_from_the_start_of_the_stream_everything_is_kept() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    for block in ramp(0, 3):
        capture.add(block)
    capture.open()
    assert capture.close().samples[0] == 0


@pytest.mark.parametrize("gap_blocks", [5, 20, 60])
def test_b15_two_utterances_share_no_sample(gap_blocks: int) -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    stream = ramp(0, 40 + gap_blocks + 10)
    for block in stream[:40]:
        capture.add(block)
    capture.open()
    first = capture.close().samples
    for block in stream[40 : 40 + gap_blocks]:
        capture.add(block)
    capture.open()
    for block in stream[40 + gap_blocks :]:
        capture.add(block)
    second = capture.close().samples
    assert first[-1] == 40 * BLOCK - 1
    assert second[0] == max(40 * BLOCK, (40 + gap_blocks) * BLOCK - 300 * 16)
    assert np.array_equal(second, np.arange(second[0], len(stream) * BLOCK).astype(np.int16))


def test_a_reopened_utterance_has_every_sample_once_also_those_between() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    stream = ramp(0, 120)
    for block in stream[:30]:
        capture.add(block)
    capture.open()
    for block in stream[30:60]:
        capture.add(block)
    first = capture.close().samples
    for block in stream[60:90]:
        capture.add(block)
    capture.reopen()
    for block in stream[90:]:
        capture.add(block)
    whole = capture.close().samples
    assert first[0] == whole[0] == 0
    assert np.array_equal(whole, np.arange(120 * BLOCK).astype(np.int16))


def test_an_utterance_cannot_be_reopened_long_afterwards() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    capture.open()
    capture.add(ramp(0, 1)[0])
    capture.close()
    for block in ramp(BLOCK, 1100):
        capture.add(block)
    capture.reopen()
    assert len(capture.close().samples) == 300 * 16


def detector(voice: Script) -> Detector:
    return Detector(voice, load(None).detect, clock=lambda: 0)


def test_b15_speech_that_begins_with_the_stream_is_heard_from_its_first_sample() -> None:
    ears = detector(Script(0.9, 0.9))
    started = [e for block in ramp(0, 8) for e in ears.hear(block)]
    assert started == [VoiceNoticed(0), SpeechStarted(0)]
    ears.open()
    assert ears.close().samples[0] == 0


def test_one_loud_frame_is_a_click_and_no_utterance() -> None:
    ears = detector(Script(0.0, 0.9, 0.1, 0.9, 0.1))
    heard = [e for block in ramp(0, 16) for e in ears.hear(block)]
    assert heard == [VoiceNoticed(0), VoiceFaded(0)] * 2


def test_pauses_are_counted_in_samples_and_begin_anew_with_each_voice() -> None:
    ears = detector(Script(0.9, 0.9, 0.1, 0.1, 0.4, 0.1))
    events = []
    for block in ramp(0, 20):
        for event in ears.hear(block):
            if isinstance(event, SpeechStarted):
                ears.open()
            events.append(event)
    # 0.4 is below the threshold but above the release: inside an utterance it is voice.
    assert events == [
        VoiceNoticed(0),
        SpeechStarted(0),
        Pause(0, 32.0),
        Pause(0, 64.0),
        SpeechResumed(0),
        Pause(0, 32.0),
    ]


def test_a_fall_is_told_before_the_detector_knows_and_taken_back_when_the_voice_goes_on() -> None:
    ears = detector(Script(*[0.9] * 5, 0.2, *[0.9] * 4))
    loud, faint = np.full(160, 8000, np.int16), np.full(160, 80, np.int16)
    heard = []
    for number, samples in enumerate([loud] * 8 + [faint] * 4 + [loud] * 4 + [faint] * 4 + [loud] * 8):
        for event in ears.hear(Block(samples, number * 160, 0)):
            heard.append(type(event))
            if isinstance(event, SpeechStarted):
                ears.open()
    assert heard == [
        VoiceNoticed,
        SpeechStarted,
        VoiceFell,
        SpeechResumed,
        VoiceFell,
        Pause,  # from here on the detector alone says when the voice goes on
        SpeechResumed,
    ]


def test_half_a_second_of_voice_in_an_utterance_is_surely_speech_and_told_once() -> None:
    ears = detector(Script(*[0.9] * 40))
    heard = []
    for number, block in enumerate(ramp(0, 130)):
        for event in ears.hear(block):
            heard.append((number * 10, type(event)))
            if isinstance(event, SpeechStarted):
                ears.open()
    # The utterance opens with the second frame; 500 ms more are 16 frames.
    assert heard == [(30, VoiceNoticed), (60, SpeechStarted), (570, SpeechSure)]


def test_an_utterance_opened_by_hand_has_no_voice_until_the_threshold_is_crossed() -> None:
    ears = detector(Script(0.4, 0.9, 0.4, 0.1))
    ears.open(by_hand=True)
    events = [e for block in ramp(0, 13) for e in ears.hear(block)]
    assert events == [Pause(0, 32.0, voiced=False), Pause(0, 32.0)]


def test_b15_the_shipped_pre_roll_is_at_least_300_ms() -> None:
    assert defaults()["detect"]["pre_roll_ms"] >= 300


def test_sample_times_follow_the_blocks() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    capture.open()
    capture.add(Block(np.zeros(BLOCK, np.int16), 0, 1_000_000_000))
    capture.add(Block(np.zeros(BLOCK, np.int16), BLOCK, 1_010_000_000))
    utterance = capture.close()
    assert utterance.at_ns(80) == 1_005_000_000
    assert utterance.at_ns(240) == 1_015_000_000
    assert utterance.at_ns(320) == 1_020_000_000
    assert utterance.at_ns(321) is None


def test_what_was_added_after_an_end_that_was_taken_back_is_known_apart() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=60)
    capture.open()
    for block in ramp(0, 40):
        capture.add(block)
    capture.close()
    for block in ramp(6_400, 10):
        capture.add(block)
    capture.reopen()
    for block in ramp(8_000, 10):
        capture.add(block)
    assert np.array_equal(capture.so_far().samples, np.arange(9_600).astype(np.int16))
    assert np.array_equal(capture.added().samples, np.arange(6_400, 9_600).astype(np.int16))
    capture.close()
    capture.open()
    assert len(capture.added().samples) == 0, "nothing of the utterance before"


def talk(*powers: int) -> list[Block]:
    """Blocks of 10 ms, as loud as they are told."""
    return [Block(np.full(BLOCK, power, np.int16), i * BLOCK, i) for i, power in enumerate(powers)]


def test_a_piece_is_cut_off_in_the_gap_between_words_and_every_sample_is_in_one() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=10)
    capture.open()
    # 10 s of voice. Silences of 200 ms: too early, in reach, in the last second; a stop of 30 ms in a word.
    powers = [3000] * 1000
    for begin, end in ((300, 320), (700, 720), (800, 803), (950, 970)):
        powers[begin:end] = [10] * (end - begin)
    stream = talk(*powers)
    for block in stream:
        capture.add(block)
    assert capture.full
    piece = capture.hand_on()
    assert 700 < len(piece.blocks) < 720
    assert not capture.full
    capture.add(stream[0])
    assert (*piece.blocks, *capture.close().blocks) == (*stream, stream[0])


def test_a_piece_of_one_loudness_leaves_its_last_second_with_what_follows() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=5)
    capture.open()
    for block in talk(*[3000] * 500):
        capture.add(block)
    assert 4.5 * 100 > len(capture.hand_on().blocks) > 3.8 * 100
    assert len(capture.hand_on().blocks) > 0, "also what is too short to choose from"
    assert Capture(300, 5).hand_on().blocks == ()


def test_what_was_added_stays_known_when_a_piece_is_handed_on() -> None:
    capture = Capture(pre_roll_ms=300, max_utterance_s=5)
    capture.open()
    stream = talk(*[3000] * 400, *[2000] * 200)
    for block in stream[:400]:
        capture.add(block)
    capture.close()
    capture.reopen()
    for block in stream[400:]:
        capture.add(block)
    capture.hand_on()
    assert capture.added().blocks == capture.so_far().blocks
    assert all(block.samples[0] == 2000 for block in capture.added().blocks)
