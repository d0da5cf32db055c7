"""One fault, told to whoever reads it."""

from __future__ import annotations

from ondam.control.shapes import engine_shape, fault_shape
from ondam.supervisor.status import EngineStatus, Fault

FAULT = Fault("engine_exited", {"engine": "piper", "status": 3, "said": ""})


def test_a_fault_is_told_in_the_language_that_is_asked_for() -> None:
    assert fault_shape(FAULT, "en")["text"] == "The engine piper ended by itself (status 3)."
    assert fault_shape(FAULT, "ko")["text"] == "piper 엔진이 스스로 종료되었습니다(상태 3)."
    assert "since" not in fault_shape(FAULT, "en")
    assert fault_shape(FAULT, "en", "2026-11-30T09:00:00+00:00")["since"] == "2026-11-30T09:00:00+00:00"


def test_an_engines_faults_are_told_so_too() -> None:
    status = EngineStatus("piper", "tts", "failed", "unix:///x", uptime_s=1.26, faults=(FAULT,))
    told = engine_shape(status, "ko")
    assert told["faults"] == [fault_shape(FAULT, "ko")]
    assert told["uptime_s"] == 1.3


def test_who_logs_in_at_an_address_is_told_nobody() -> None:
    url = "https://user:geheim@rack:8000/v1"
    status = EngineStatus(url, "llm", "failed", url, faults=(Fault("engine_unreported", {"address": url}),))
    told = engine_shape(status, "en")
    assert told["name"] == "https://…@rack:8000/v1"
    assert "geheim" not in repr(told)
    assert "https://…@rack:8000/v1" in told["faults"][0]["text"]
