"""A daemon's status and a turn, to be changed where a test is about it."""

from __future__ import annotations

from typing import Any, cast

from ondam.control import wire
from ondam_ui.tray.seen import Seen, Today


def engine(stage: str, model: str | None, device: str | None = "cpu", **changed: Any) -> wire.EngineStatus:
    made = {
        "name": stage,
        "stage": stage,
        "state": "ready",
        "pid": 1,
        "loads": 1,
        "device": device,
        "model": model,
        "rss_mib": 100.0,
        "restarts": 0,
        "uptime_s": 10.0,
        "spare": False,
        "outside": False,
        "policy": "warn",
        "fit": "as_planned",
        "faults": [],
        "report": None,
    }
    return cast("wire.EngineStatus", {**made, **changed})


def status(**changed: Any) -> wire.Status:
    made = {
        "version": "0.1.0",
        "pid": 1,
        "uptime_s": 10.0,
        "session": "a",
        "state": "listening",
        "mode": "open",
        "echo": None,
        "language": "en",
        "microphone": {"name": "default", "state": "ok"},
        "speaker": {"name": "default", "state": "ok"},
        "engines": [engine("stt", "whisper-base"), engine("llm", "qwen3-4b", "cuda"), engine("tts", "joe")],
        "fit": "as_planned",
        "faults": [],
        "turns": 1,
        "last_turn": None,
        "report": {},
        "conditions": {},
        "switch": None,
    }
    return cast("wire.Status", {**made, **changed})


STAGES = {
    "endpoint": 224.0,
    "ipc": 4.0,
    "stt": 190.0,
    "llm_first_token": 312.0,
    "first_clause": 40.0,
    "tts_first_audio": 110.0,
    "playback_buffer": 20.0,
}

TARGETS = {
    "endpoint": 296.0,
    "ipc": 8.0,
    "stt": 144.0,
    "llm_first_token": 160.0,
    "first_clause": 64.0,
    "tts_first_audio": 104.0,
    "playback_buffer": 24.0,
}


def turn(
    *,
    first_audio_ms: float | None = 900.0,
    over: bool | None = True,
    made_drafts: int = 1,
    **stages: float | None,
) -> wire.Turn:
    made = {
        "id": 1,
        "stages_ms": {**STAGES, **stages},
        "first_audio_ms": first_audio_ms,
        "over_budget": over,
        "drafts": {"made": made_drafts, "dropped": 1, "tokens": 0},
    }
    return cast("wire.Turn", made)


def seen(**changed: Any) -> Seen:
    made: dict[str, Any] = {
        "status": status(),
        "last": turn(),
        "targets_ms": TARGETS,
        "today": Today("settled", 23, 640.4, 910.0, 1730.0),
    }
    return Seen(**{**made, **changed})


def microphones(*names: str, chosen: str | None = None, gone: str | None = None) -> wire.Devices:
    choices = [
        {
            "name": name,
            "label": name.title(),
            "chosen": name == chosen,
            "default": number == 0,
            "present": name != gone,
        }
        for number, name in enumerate(names)
    ]
    return cast("wire.Devices", {"microphones": choices, "speakers": []})
