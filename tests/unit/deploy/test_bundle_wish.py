"""What a bundle is to hold, and whether the target can begin with that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ondam.deploy.bundle_create import Wish
from ondam.deploy.bundle_wish import wish_for
from ondam.places import places


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def wish(**asked: Any) -> Wish:
    whole = dict.fromkeys(("facts", "config", "machine", "python", "glibc", "carry", "wheel"))
    return wish_for(places(), **{"engines": (), "models": (), "debian": False, **whole, **asked})


EMBEDDED = ["faster_whisper", "llama_server", "piper", "espeak"]


def test_without_names_it_holds_what_the_plan_needs_and_nothing_is_lacking(here: Path) -> None:
    made = wish()
    assert [engine.name for engine, _ in made.engines] == EMBEDDED
    assert made.lacking == []


def test_an_engine_that_the_target_would_plan_and_will_not_find_is_told(here: Path) -> None:
    names = [name if name != "llama_server" else "llama_cpp" for name in EMBEDDED]
    models = ("whisper-base", "smollm2-135m-instruct", "joe")
    assert wish(engines=names, models=models).lacking == ["llama_server"]

    config = here / "site.toml"
    config.write_text('[llm]\nengine = "llama_cpp"\nmodel = "smollm2-135m-instruct"\n', "utf-8")
    assert wish(engines=names, models=models, config=config).lacking == []
