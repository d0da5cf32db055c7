"""Utterance to words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ondam.journal.marks import VOICED_BLOCK, last_voiced_sample
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.ports import Engines, Transcript
from ondam.speech import Verdict, verdict, without_junk_tail
from ondam.types import HEARING_RATE_HZ, Audio, Language, Nanoseconds, Samples

NO_SPEECH = 0.6
"""Whisper's own threshold for its no-speech probability (Radford et al. 2022, section 4.5)."""

FAINT_DB = -45.0
"""A suspect transcript of a sound that never gets louder than this is taken for noise. Speech at a desk peaks
between -30 and -10 dB, a quiet room lies below -55."""


async def recognize(
    turn: Turn,
    utterance: Utterance,
    engines: Engines,
    language: Language,
    names: Sequence[str],
    clock: Callable[[], Nanoseconds],
) -> str:
    """The words of ``utterance``; marks and figures go into ``turn``. Raises EngineError."""
    audio = utterance.audio
    recognizer = engines.recognizer()
    turn.marks.set("stt_sent", clock())
    transcript = await recognizer.transcribe(audio, language, names)
    turn.marks.set("stt_final", clock())
    engines.answered("stt")
    turn.engine_ms.stt = transcript.engine_ms
    turn.transcript = meant(transcript, audio, language)
    return turn.transcript


async def recognize_alone(
    added: Utterance, engines: Engines, language: Language, names: Sequence[str]
) -> str:
    """The words of a part of an utterance, recognized for itself. Raises EngineError."""
    transcript = await engines.recognizer().transcribe(added.audio, language, names)
    engines.answered("stt")
    return meant(transcript, added.audio, language)


def meant(transcript: Transcript, audio: Audio, language: Language) -> str:
    """What somebody really said to us, empty where nobody did.

    A recognizer writes sign-offs and thanks for silence and noise. Some are never said to an assistant;
    others are, and count when the sound was speech: loud enough, and not silence to the recognizer itself.
    """
    text = without_junk_tail(transcript.text, language)
    judged = verdict(text, language)
    if judged is Verdict.JUNK:
        return ""
    if judged is Verdict.SUSPECT:
        silent = transcript.no_speech_prob is not None and transcript.no_speech_prob > NO_SPEECH
        if silent or level_db(audio.samples) < FAINT_DB:
            return ""
    return text


def level_db(samples: Samples) -> float:
    """Level of the loudest 10 ms, in dB below full scale; -inf for silence."""
    whole = len(samples) // VOICED_BLOCK
    if not whole:
        return float("-inf")
    blocks = samples[: whole * VOICED_BLOCK].reshape(whole, VOICED_BLOCK).astype(np.float32)
    loudest = float(np.sqrt(np.mean(np.square(blocks), axis=1)).max())
    return 20 * math.log10(loudest / 32768) if loudest else float("-inf")


def mark_last_voice(turn: Turn, utterance: Utterance) -> None:
    """Set the origin of the turn's figures: the end of the user's last voiced 10 ms. A later call counts."""
    index = last_voiced_sample(utterance.samples)
    at_ns = utterance.at_ns(index)
    if index and at_ns is not None:
        turn.marks.replace("last_voiced", at_ns)
    turn.utterance_s = len(utterance.samples) / HEARING_RATE_HZ
