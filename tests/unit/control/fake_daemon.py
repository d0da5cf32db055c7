"""A daemon that answers from a script and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from ondam.control import wire
from ondam.control.api import ChatAnswer
from ondam.control.events import Broadcast
from ondam.errors import ControlError, OndamError
from ondam.journal.reading import Selection
from ondam.measure.budget_answer import Wanted, answer
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_own import Own
from ondam.pipeline.ports import SpeechStart, Transcript
from ondam.types import Audio, Language, Mode, Samples

RATE_HZ = 22_050


async def until(condition: Callable[[], bool]) -> None:
    """Return when ``condition`` holds; TimeoutError after 5 s."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def turn(number: int = 1) -> wire.Turn:
    return {
        "id": number,
        "session": "test",
        "started_at": "2026-01-02T03:04:05.000+00:00",
        "outcome": "answered",
        "fault": None,
        "cause": None,
        "transcript": "몇 시야?",
        "reply": "세 시입니다.",
        "audio": {"seconds": 1.5},
        "utterance_s": 0.9,
        "marks_ms": {"endpoint": 300.0, "dac_first_sample": 640.0},
        "stages_ms": {
            "endpoint": 300.0,
            "ipc": 5.0,
            "stt": 150.0,
            "llm_first_token": 80.0,
            "first_clause": 40.0,
            "tts_first_audio": 35.0,
            "playback_buffer": 30.0,
        },
        "engine_ms": {"stt": 150.0, "sum": 305.0},
        "first_audio_ms": 640.0,
        "answer_ms": 2400.0,
        "filler_ms": None,
        "canned": False,
        "llm_calls": 1,
        "tokens": {"prompt": 42, "cached": 30, "output": 9},
        "drafts": {"made": 0, "dropped": 0, "tokens": 0},
        "taken_back": 0,
        "clauses": 1,
        "voiced_s": 1.0,
        "voice": "piper",
        "settled": True,
        "population": "settled",
        "warmth": {"answers": 100, "ready_s": 1000.0, "idle_s": 1.0},
        "underruns": 0,
        "thought": False,
        "over_budget": False,
        "conditions": "0123456789ab",
        "load_average_1min": 0.5,
        "power": "mains",
        "engines": {"faster_whisper": {"pid": 4242}},
    }


def engine(name: str = "faster_whisper", *, spare: bool = False) -> wire.EngineStatus:
    stages: dict[str, Literal["stt", "llm"]] = {"faster_whisper": "stt", "llama_server": "llm"}
    return {
        "name": name,
        "stage": stages.get(name, "tts"),
        "state": "ready",
        "pid": 4242,
        "loads": 1,
        "device": "cpu",
        "model": {"faster_whisper": "whisper-base", "llama_server": "smollm2-135m-instruct"}.get(name),
        "rss_mib": 181.5,
        "isolation": None,
        "restarts": 0,
        "uptime_s": 61.0,
        "spare": spare,
        "outside": False,
        "policy": "warn",
        "fit": "as_planned",
        "faults": [],
        "report": {"schema": 1},
    }


def devices(chosen: Mapping[wire.DeviceKind, str | None]) -> wire.Devices:
    def choices(kind: wire.DeviceKind, *names: str) -> list[wire.DeviceChoice]:
        return [
            {
                "name": name,
                "label": name.title(),
                "chosen": chosen.get(kind) == name,
                "default": name == names[0],
                "present": True,
            }
            for name in names
        ]

    microphones = choices("microphone", "built-in", "headset")
    return {"microphones": microphones, "speakers": choices("speaker", "hdmi")}


def settings(mode: wire.Mode) -> wire.Settings:
    return {
        "settings": [
            {
                "key": "listen.mode",
                "value": mode,
                "kind": "choice",
                "choices": [{"value": "open", "label": "Always"}, {"value": "muted", "label": "Never"}],
                "label": "Listens",
                "help": "When it listens.",
                "kept": mode == "open",
            },
            {
                "key": "llm.max_tokens",
                "value": 64,
                "kind": "number",
                "least": 1,
                "most": 8192,
                "whole": True,
                "label": "Answer length",
                "help": "In tokens.",
                "kept": True,
            },
        ]
    }


def series() -> wire.Series:
    return {
        "turns": 0,
        "skipped": 0,
        "more": False,
        "behind": False,
        "since": "2026-01-01T00:00:00+00:00",
        "until": "2026-01-02T00:00:00+00:00",
        "bucket_s": 3600,
        "budget_ms": 800.0,
        "conditions": [],
        "chosen": None,
        "drifting": 0,
        "populations": {},
        "buckets": [],
        "histogram": {"step_ms": 50, "counts": {}},
    }


@dataclass
class FakeDaemon:
    """Every answer can be replaced by an error (``failing``) or held back (``hold``)."""

    asked: list[tuple[object, ...]] = field(default_factory=list)
    failing: OndamError | None = None
    hold: asyncio.Event | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    broadcast: Broadcast = field(default_factory=lambda: Broadcast(capacity=8))
    chunks: Sequence[bytes] = (b'data: {"a":1}\n\n', b"data: [DONE]\n\n")
    speech: Sequence[SpeechStart | Samples] = (
        SpeechStart(RATE_HZ, 12.0, 0.0),
        np.arange(2205, dtype=np.int16),
        np.full(2205, 7, np.int16),
    )
    break_after_first_chunk: OndamError | None = None
    faults: list[wire.Fault] = field(default_factory=list)
    mode: wire.Mode = "open"
    chosen: dict[wire.DeviceKind, str | None] = field(default_factory=dict)
    pressed: bool = False
    microphone: wire.Device = field(default_factory=lambda: wire.Device(name="내장 마이크", state="ok"))
    read_in: list[Language | None] = field(default_factory=list)
    """Languages that the status was asked in."""

    async def _note(self, *call: object) -> None:
        self.asked.append(call)
        if self.failing:
            raise self.failing
        if self.hold:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

    def status(self, language: Language | None = None) -> wire.Status:
        self.read_in.append(language)
        return {
            "version": "0.1.0",
            "pid": 77,
            "uptime_s": 3720.0,
            "session": "s",
            "state": "listening",
            "mode": self.mode,
            "echo": None,
            "language": "ko",
            "microphone": self.microphone,
            "speaker": {"name": "default", "state": "missing"},
            "engines": [engine(), engine("llama_server"), engine("espeak", spare=True)],
            "fit": "as_planned",
            "faults": self.faults,
            "turns": 3,
            "last_turn": turn(3),
            "report": {"populations": {}},
            "conditions": {"cores": 2},
            "switch": None,
        }

    def subscribe(self, *, levels: bool = False) -> AbstractAsyncContextManager[AsyncIterator[wire.Event]]:
        return self.broadcast.subscribe(
            lambda: {"type": "snapshot", "status": self.status()}, fleeting=levels
        )

    async def report(self, selection: Selection, language: Language) -> wire.Report:
        await self._note("report", selection, language)
        return {"turns": 0, "more": False, "skipped": 0, "groups": []}

    async def series(self, selection: Selection, window: str) -> wire.Series:
        await self._note("series", selection, window)
        return series()

    async def budget(self, wanted: Wanted, language: Language) -> wire.Budget:
        await self._note("budget", wanted, language)
        return cast(wire.Budget, answer(wanted, knowledge(), Own(None, 0, 0), 800.0, language))

    def metrics(self) -> bytes:
        return b"ondam_up 1\n"

    async def ask(self, text: str, speak: bool) -> wire.Turn:
        await self._note("ask", text, speak)
        return turn()

    async def say(self, text: str, language: Language | None) -> wire.Said:
        await self._note("say", text, language)
        return {"text": text, "language": language or "ko", "audio": {"seconds": 0.8}}

    async def listen(self, timeout_s: float) -> wire.Turn:
        await self._note("listen", timeout_s)
        return turn()

    async def set_mode(self, mode: wire.WantedMode) -> Mode:
        await self._note("set_mode", mode)
        self.mode = "open" if mode == "unmuted" else mode
        return self.mode

    async def press(self) -> None:
        await self._note("press")
        self.pressed = True

    async def release(self) -> None:
        await self._note("release")
        self.pressed = False

    async def toggle(self) -> bool:
        await self._note("toggle")
        self.pressed = not self.pressed
        return self.pressed

    async def stop_speaking(self) -> None:
        await self._note("stop_speaking")

    async def wav_turn(
        self, audio: Audio, language: Language | None, reset_history: bool, settings: Mapping[str, object]
    ) -> tuple[wire.Turn, Audio]:
        asked = (len(audio.samples), audio.rate_hz, language, reset_history)
        await self._note("wav_turn", *asked, *([dict(settings)] if settings else []))
        return turn(), Audio(np.arange(100, dtype=np.int16), RATE_HZ)

    async def transcribe(self, audio: Audio, language: Language | None, names: Sequence[str]) -> Transcript:
        await self._note("transcribe", len(audio.samples), audio.rate_hz, language, list(names))
        return Transcript("안녕하세요.", language or "ko", 150.0, 1.0, 0.02, -0.3)

    async def synthesize(
        self, text: str, language: Language | None
    ) -> AsyncGenerator[SpeechStart | Samples, None]:
        await self._note("synthesize", text, language)
        for piece in self.speech:
            yield piece
            if self.break_after_first_chunk and not isinstance(piece, SpeechStart):
                raise self.break_after_first_chunk

    async def chat(self, body: Mapping[str, object]) -> ChatAnswer:
        await self._note("chat", dict(body))
        return ChatAnswer(200, {"Content-Type": "text/event-stream", "Server": "llama.cpp"}, self._chunks())

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            for chunk in self.chunks:
                yield chunk
                if self.hold:
                    await self.hold.wait()
        finally:
            self.cancelled.set()

    async def turns(self, limit: int) -> list[wire.Turn]:
        await self._note("turns", limit)
        return [turn(3), turn(2)][:limit]

    async def switch(self, wanted: Mapping[str, str], keep: bool) -> wire.Switch:
        await self._note("switch", wanted, keep)
        return {
            "state": "done",
            "wanted": wanted,
            "since": "2026-01-02T03:04:05+00:00",
            "stages": ["llm"],
            "beside": True,
            "short": [],
            "kept": keep,
            "fault": None,
        }

    async def restart_engine(self, name: str) -> None:
        await self._note("restart_engine", name)
        if name != "faster_whisper":
            raise ControlError("engine_not_running_here", name=name)

    async def engine_log(self, name: str, lines: int) -> str:
        await self._note("engine_log", name, lines)
        return "loaded\nready\n"

    async def devices(self) -> wire.Devices:
        await self._note("devices")
        return devices(self.chosen)

    async def choose_devices(self, wanted: Mapping[wire.DeviceKind, str | None], keep: bool) -> wire.Devices:
        await self._note("choose_devices", dict(wanted), keep)
        self.chosen |= wanted
        return devices(self.chosen)

    async def settings(self, language: Language) -> wire.Settings:
        await self._note("settings", language)
        return settings(self.mode)

    async def set_settings(
        self, wanted: Mapping[str, object], keep: bool, language: Language
    ) -> wire.Settings:
        await self._note("set_settings", dict(wanted), keep, language)
        self.mode = cast(wire.Mode, wanted.get("listen.mode", self.mode))
        return settings(self.mode)

    async def reload(self) -> wire.Reloaded:
        await self._note("reload")
        return {"applied": ["llm.max_tokens"], "needs_restart": ["metrics.listen"]}

    async def diagnostics(self, language: Language) -> wire.Diagnostics:
        await self._note("diagnostics", language)
        return {
            "made_at": "2026-01-02T03:04:05+00:00",
            "versions": {"ondam": "0.1.0"},
            "status": self.status(),
            "config": {"listen.mode": self.mode},
            "report": {"turns": 0, "more": False, "skipped": 0, "groups": []},
            "findings": [],
            "logs": {"daemon": "listening"},
        }

    async def shutdown(self) -> None:
        await self._note("shutdown")
