"""What the pages point at is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    here = (link.partition("#")[0] for link in links if not re.match(r"[a-z]+:", link))
    assert [link for link in here if not (page.parent / link).exists()] == []


def test_every_file_that_the_walk_through_the_code_names_is_there() -> None:
    names = re.findall(r"`([a-z_/.]+(?:\.py|/))`", (ROOT / "docs/code.md").read_text("utf-8"))
    assert len(names) > 40
    assert [n for n in names if not any((at / n).exists() for at in (ROOT, ROOT / "daemon/ondam"))] == []


def test_both_readmes_point_at_the_same_pages_and_type_the_same_commands() -> None:
    english, korean = ((ROOT / name).read_text("utf-8") for name in ("README.md", "README.ko.md"))
    korean = korean.replace("docs/ko/", "docs/").replace("-ko.png", "-en.png")
    for pattern in (r"\]\((docs/[^)]+)\)", r"(?m)^(?:script/|ondam |export )[a-z -]*"):
        assert sorted(set(re.findall(pattern, english))) == sorted(set(re.findall(pattern, korean)))
