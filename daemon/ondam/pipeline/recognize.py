"""Utterance to words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ondam.journal.marks import last_voiced_sample
from ondam.journal.turn import Turn
from ondam.pipeline.capture import Utterance
from ondam.pipeline.ports import Engines
from ondam.types import HEARING_RATE_HZ, Language, Nanoseconds


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
    turn.transcript = transcript.text.strip()
    return turn.transcript


def mark_last_voice(turn: Turn, utterance: Utterance) -> None:
    """Set the origin of the turn's figures: the end of the user's last voiced 10 ms. A later call counts."""
    index = last_voiced_sample(utterance.samples)
    at_ns = utterance.at_ns(index)
    if index and at_ns is not None:
        turn.marks.replace("last_voiced", at_ns)
    turn.utterance_s = len(utterance.samples) / HEARING_RATE_HZ
