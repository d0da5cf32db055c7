"""What continuous integration leaves out is only more of the same."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_thorough_marks_stand_on_single_values_and_never_on_a_whole_test() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        for line in path.read_text("utf-8").splitlines():
            if "mark.thorough" in line and path != Path(__file__):
                assert "pytest.param(" in line, f"{path.name}: {line.strip()}"
