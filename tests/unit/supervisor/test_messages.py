from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import ondam
from ondam.messages import catalog

ROOT = Path(ondam.__file__).parent
SOURCES = [*(ROOT / "supervisor").glob("*.py"), *(ROOT / "planner").glob("*.py"), ROOT / "cli" / "engines.py"]
SAID = re.compile(r'(?:Fault|Error|text)\(\s*"([a-z_]+)"')
FOR_USER = [
    f"{what}_{role}"
    for what in ("engine_restarting", "engine_back", "engine_down")
    for role in ("stt", "llm", "tts", "spare")
]
PLANNED = ["plan_configured", "plan_voice_for_language", "plan_spare", "plan_model_other_language"]


def test_every_code_has_a_text_in_both_languages() -> None:
    said = {code for source in SOURCES for code in SAID.findall(source.read_text("utf-8"))}
    assert len(said) > 15
    for code in (*said, *FOR_USER, *PLANNED, "engine_spare_speaks"):
        assert {"ko", "en"} <= catalog()[code].keys(), code


@pytest.mark.parametrize("code", FOR_USER)
def test_what_is_said_aloud_holds_nothing_that_only_a_screen_can_show(code: str) -> None:
    for language in ("ko", "en"):
        assert not [name for _, name, *_ in string.Formatter().parse(catalog()[code][language]) if name]
