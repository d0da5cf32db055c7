"""What ``ondam doctor`` says of TensorRT's engines, or of whatever an engine keeps for a card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ondam.cli import doctor_prepared
from ondam.cli.doctor_prepared import prepared
from ondam.config import load
from ondam.errors import EngineError
from ondam.places import Places
from ondam.planner.plan import Plan, PlannedEngine
from ondam.supervisor.manifest import engine_roots, find_engines

VOICE = PlannedEngine("supertonic", "tts", "supertonic-3", None, None, "cuda:0", 1, "en")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(doctor_prepared, "installed", lambda engine, here, variant: None)
    return Places(tmp_path, tmp_path, tmp_path, tmp_path)


def told(here: Places, voice: PlannedEngine) -> list[tuple[bool, str, str]]:
    engines = find_engines(engine_roots(here.user_engines))
    return [(f.ok, f.text, f.next) for f in prepared(Plan((voice,)), engines, here, load(None).supervisor)]


def test_what_is_not_made_is_told_with_the_engines_own_reason(
    here: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object, **how: Any) -> None:
        assert how["look"]
        raise EngineError("engine_warm_failed", engine="supertonic", reason="other driver", log="x")

    monkeypatch.setattr(doctor_prepared, "warm", look)
    text = "supertonic is not prepared for this machine and does not run as planned: other driver"
    assert told(here, VOICE) == [(False, text, "ondam engines warm supertonic")]


def test_what_is_made_is_well_and_the_processor_needs_nothing(
    here: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_prepared, "warm", lambda *_, **how: None)
    assert [ok for ok, _, _ in told(here, VOICE)] == [True]
    assert told(here, replace(VOICE, device="cpu")) == []
