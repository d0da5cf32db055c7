"""What continuous integration leaves out is only more of the same."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_what_is_left_out_is_a_further_value_or_says_why() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        for line in path.read_text("utf-8").splitlines():
            if "mark.thorough" in line and path != Path(__file__):
                assert "pytest.param(" in line or "  # " in line, f"{path.name}: {line.strip()}"
