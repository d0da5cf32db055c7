from __future__ import annotations

from importlib import resources
from pathlib import Path

from ondam.supervisor.manifest import read_engine
from ondam_engines.qwen_tts.languages import NAMES

FOLDER = Path(str(resources.files("ondam_engines"))) / "qwen_tts"


def pin(lock: Path, package: str) -> set[str]:
    lines = lock.read_text().split("\n")
    return {line.split(" ")[0] for line in lines if line.split("==")[0] == package}


def test_the_manifest_promises_the_languages_that_have_a_name() -> None:
    assert read_engine(FOLDER).manifest.capabilities.languages == list(NAMES)


def test_the_two_engines_could_not_share_an_environment() -> None:
    for lock in ("requirements.lock", "requirements.cu13.lock"):
        ours, theirs = FOLDER / lock, FOLDER.parent / "qwen_asr" / lock
        assert pin(ours, "transformers") == {"transformers==4.57.3"}
        assert pin(theirs, "transformers") == {"transformers==4.57.6"}


def test_a_cpu_gets_the_cpu_build_of_torch_and_a_card_the_public_one() -> None:
    assert "torch==2.13.0+cpu" in pin(FOLDER / "requirements.lock", "torch")
    assert pin(FOLDER / "requirements.cu13.lock", "torch") == {"torch==2.13.0"}
