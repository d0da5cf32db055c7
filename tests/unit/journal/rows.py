"""Turns as the journal has them, with nothing wrong about them; a test says what is."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

FACTS: dict[str, Any] = {
    "version": "0.1.0",
    "cores": 2,
    "system": "Linux",
    "endpoint": {"mode": "smart_turn"},
    "drafts": {"most_per_turn": 8},
    "max_tokens": 64,
    "budget_ms": 800.0,
    "thinking": False,
    "settling": {"settled_answers": 10, "settled_s": 30.0, "steady_turns": 5, "steady_within": 0.1},
    "engines": {
        "stt": {"name": "faster_whisper", "model": "whisper-base", "device": "cpu", "differs": []},
        "llm": {
            "name": "llama_server",
            "model": "smollm2",
            "device": "cpu",
            "context_length": 4096,
            "model_mib": 100,
            "differs": [],
        },
        "tts": {"name": "piper", "model": "joe", "device": "cpu", "differs": []},
    },
}

ENDPOINT_MS, PLAYBACK_MS = 200.0, 10.0


def row(number: int = 0, first_audio_ms: float = 600.0, **other: Any) -> dict[str, Any]:
    """Answered and settled, a minute after the one before. Its answer was begun in the pause."""
    last_token = 300.0
    made: dict[str, Any] = {
        "id": number,
        "session": "run-1",
        "started_at": (NOON + timedelta(minutes=number)).isoformat(timespec="milliseconds"),
        "outcome": "answered",
        "transcript": None,
        "reply": None,
        "audio": {"seconds": 3.0},
        "utterance_s": 2.0,
        "marks_ms": {"last_voiced": 0.0, "llm_sent": 100.0, "tts_sent": 500.0},
        "stages_ms": {
            "endpoint": ENDPOINT_MS,
            "ipc": 0.0,
            "stt": 0.0,
            "llm_first_token": 0.0,
            "first_clause": 0.0,
            "tts_first_audio": first_audio_ms - ENDPOINT_MS - PLAYBACK_MS,
            "playback_buffer": PLAYBACK_MS,
        },
        "engine_ms": {
            "stt": 100.0,
            "llm_first_token": 100.0,
            "llm_first_clause": 200.0,
            "llm_last_token": last_token,
            "tts_first_audio": 100.0,
            "tts": 300.0,
            "sum": 400.0,
        },
        "first_audio_ms": first_audio_ms,
        "answer_ms": first_audio_ms + 3000.0,
        "canned": False,
        "llm_calls": 1,
        "tokens": {"prompt": 50, "cached": 40, "output": 21},
        "drafts": {"made": 1, "dropped": 0, "tokens": 0},
        "taken_back": 0,
        "voiced_s": 3.0,
        "voice": "piper",
        "settled": True,
        "population": "settled",
        "underruns": 0,
        "thought": False,
        "over_budget": first_audio_ms > 800,
        "conditions": "c1",
        "load_average_1min": 0.5,
        "power": "mains",
        "engines": {
            "faster_whisper": {"pid": 1, "started_at": "2026-01-31T11:00:00+00:00", "load_s": 2.0},
            "llama_server": {"pid": 2, "started_at": "2026-01-31T11:00:00+00:00", "load_s": 2.0},
            "piper": {"pid": 3, "started_at": "2026-01-31T11:00:00+00:00", "load_s": 2.0},
        },
    }
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] |= value
        else:
            made[key] = value
    return made


def facts(**engines: dict[str, Any]) -> dict[str, Any]:
    """``FACTS`` with something else about an engine."""
    made = copy.deepcopy(FACTS)
    for stage, told in engines.items():
        made["engines"][stage] |= told
    return made
