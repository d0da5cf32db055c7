from __future__ import annotations

from pathlib import Path

import pytest

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
