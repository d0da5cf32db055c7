"""Hears where an utterance begins and how long its pauses are. Decides nothing: the dialog machine does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ondam.config import DetectConfig
from ondam.dialog.events import (
    Event,
    Pause,
    SpeechResumed,
    SpeechStarted,
    SpeechSure,
    UtteranceFull,
    VoiceFaded,
    VoiceFell,
    VoiceNoticed,
)
from ondam.pipeline.capture import Capture, Utterance
from ondam.pipeline.fall import Change, Fall
from ondam.pipeline.ports import VoiceActivity
from ondam.types import HEARING_RATE_HZ, Block, Nanoseconds, Samples


class Detector:
    """Turns blocks into events, and keeps the samples of the open utterance."""

    def __init__(self, voice: VoiceActivity, config: DetectConfig, clock: Callable[[], Nanoseconds]) -> None:
        self._voice = voice
        self._config = config
        self._clock = clock
        self._capture = Capture(config.pre_roll_ms + config.min_speech_ms, config.max_utterance_s)
        self._pending: Samples = np.zeros(0, np.int16)
        self._listening = False
        """An utterance is open."""
        self._voiced_samples = 0
        """Voice in a row before an utterance is opened; after that, all voice in it."""
        self._silent_samples = 0
        self._heard_voice = False
        self._fall = Fall()
        self.probability = 0.0
        """Of the latest frame; shown as a level."""

    @property
    def frame_s(self) -> float:
        """Length of the frames that are judged, in seconds."""
        return self._voice.frame / HEARING_RATE_HZ

    def hear(self, block: Block) -> Iterator[Event]:
        """Events that ``block`` completes, in order. The caller handles each before asking for the next."""
        self._capture.add(block)
        self._pending = np.concatenate([self._pending, block.samples])
        frame = self._voice.frame
        while len(self._pending) >= frame:
            piece, self._pending = self._pending[:frame], self._pending[frame:]
            self.probability = self._voice(piece)
            if self._listening:
                yield from self._in_utterance(frame)
            else:
                yield from self._outside(frame)
        if self._listening and self._heard_voice:
            yield from self._by_loudness(block)
        if self._listening and self._capture.full:
            yield UtteranceFull(self._clock())

    def _by_loudness(self, block: Block) -> Iterator[Event]:
        change = self._fall.hear(block.samples, self.probability)
        if self._silent_samples:
            return  # the voice detector knows of the pause: it alone says when it is over
        if change is Change.FELL:
            yield VoiceFell(self._clock())
        elif change is Change.ROSE:
            yield SpeechResumed(self._clock())

    def keep(self, block: Block) -> None:
        """Remember ``block`` as pre-roll of an utterance opened by hand; no voice is looked for."""
        self._capture.add(block)

    def _outside(self, frame: int) -> Iterator[Event]:
        noticed = self._voiced_samples > 0
        if self.probability < self._config.threshold:
            self._voiced_samples = 0
            if noticed:
                yield VoiceFaded(self._clock())
            return
        self._voiced_samples += frame
        if not noticed:
            yield VoiceNoticed(self._clock())
        if self._voiced_samples * 1000 >= self._config.min_speech_ms * HEARING_RATE_HZ:
            yield SpeechStarted(self._clock())

    def _in_utterance(self, frame: int) -> Iterator[Event]:
        # Hysteresis: inside an utterance a lower probability still counts as voice.
        least = self._config.release if self._heard_voice else self._config.threshold
        if self.probability >= least:
            resumed, self._silent_samples = self._silent_samples > 0 and self._heard_voice, 0
            self._heard_voice = True
            if resumed:
                self._fall.go_on()
                yield SpeechResumed(self._clock())
            before, self._voiced_samples = self._voiced_samples, self._voiced_samples + frame
            sure = self._config.speech_ms * HEARING_RATE_HZ // 1000
            if before < sure <= self._voiced_samples:
                yield SpeechSure(self._clock())
            return
        self._silent_samples += frame
        yield Pause(self._clock(), self._silent_samples * 1000 / HEARING_RATE_HZ, self._heard_voice)

    def open(self, *, by_hand: bool = False) -> None:
        """Begin to keep an utterance, from the pre-roll on. ``by_hand``: no voice was heard yet."""
        self._capture.open()
        self._fall.begin()
        self._listening = True
        self._heard_voice = not by_hand
        self._silent_samples = 0
        self._voiced_samples = 0

    def reopen(self) -> None:
        """Go on with the utterance that was closed last: the user had not finished."""
        self._capture.reopen()
        self._fall.begin()
        self._listening = True
        self._heard_voice = True
        self._silent_samples = 0
        self._voiced_samples = 0

    def so_far(self) -> Utterance:
        """The open utterance as it is now."""
        return self._capture.so_far()

    def hand_on(self) -> Utterance:
        """Take all but the end off the open utterance, which goes on."""
        return self._capture.hand_on()

    def added(self) -> Utterance:
        """Of the open utterance what came after the end that was taken back."""
        return self._capture.added()

    def close(self) -> Utterance:
        """End the utterance and hand it over. It can be reopened for a while."""
        self._listening = False
        self._silent_samples = 0
        self._voiced_samples = 0
        return self._capture.close()

    def forget(self) -> None:
        """What was heard until now was the assistant itself: start afresh."""
        self._capture.forget()
        self._voice.reset()
        self._pending = self._pending[:0]
        self._voiced_samples = 0
