from __future__ import annotations

from importlib import resources
from pathlib import Path

from ondam.supervisor.manifest import read_engine
from ondam_engines.qwen_asr.languages import NAMES, WITHOUT_SPACES

FOLDER = Path(str(resources.files("ondam_engines"))) / "qwen_asr"


def test_the_manifest_promises_the_languages_that_have_a_name() -> None:
    assert sorted(read_engine(FOLDER).manifest.capabilities.languages) == sorted(NAMES)
    assert NAMES["ko"] == "Korean"
    assert set(NAMES) >= WITHOUT_SPACES


def test_what_is_left_out_is_in_no_lock() -> None:
    left_out = [line for line in (FOLDER / "left-out.txt").read_text().split("\n") if line.isidentifier()]
    assert "librosa" in left_out
    for lock in FOLDER.glob("*.lock"):
        assert [line for line in lock.read_text().split("\n") if line.split("==")[0] in left_out] == []
