from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.planner.test_choose import plan, problems

from ondam.config import load
from ondam.planner.policy import policy_of


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        ("", ("warn", "warn")),
        ('[supervisor]\npolicy = "require"\n', ("require", "require")),
        ('[engines.vllm]\npolicy = "require"\n', ("require", "warn")),
        ('[supervisor]\npolicy = "require"\n[engines.vllm]\npolicy = "warn"\n', ("warn", "require")),
        # The planner tells it with the other problems, and starts nothing.
        ('[engines.vllm]\npolicy = "perhaps"\n', ("warn", "warn")),
    ],
)
def test_an_engine_has_its_own_policy_or_that_of_all(
    text: str, policies: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    config = load(path)
    assert (policy_of(config, "vllm"), policy_of(config, "piper")) == policies


def test_the_plan_gives_each_engine_its_own() -> None:
    own: dict[str, Any] = {"engines": {"faster_whisper": {"policy": "require", "beam_size": 2}}}
    policies = {engine.engine: engine.policy for engine in plan(**own).launched}
    assert policies == {
        "faster_whisper": "require", "llama_server": "warn", "piper": "warn", "espeak": "warn"
    }  # fmt: skip
    # It is no option of the engine's, which would not know it.
    assert "policy" not in plan(**own).launched[0].options


def test_a_policy_that_is_none_is_told_with_its_key() -> None:
    told = problems(engines={"faster_whisper": {"policy": "perhaps"}})
    assert "engines.faster_whisper.policy: should be require | warn (found 'perhaps')" in told
