"""The presets that the budget page offers are those that the calculator knows, by the same names."""

from __future__ import annotations

import re
from pathlib import Path

import ondam_ui.panel
from ondam.measure.budget_data import knowledge
from ondam.measure.budget_own import NAME

PAGE = Path(ondam_ui.panel.__file__).parent / "page" / "budget.js"


def test_the_page_offers_this_machine_and_every_preset_there_is() -> None:
    offered = re.search(r"const PRESETS = \{(.*?)\};", PAGE.read_text("utf-8"), re.DOTALL)
    assert offered is not None
    codes = dict(re.findall(r'"?([\w-]+)"?: "(\w+)"', offered[1]))
    known = {name: f"budget_preset_{preset.words}" for name, preset in knowledge().presets.items()}
    assert codes == {NAME: "budget_preset_this_machine", **known}
