from __future__ import annotations

from pathlib import Path

from ondam_engines.kit.loads import Loads


def test_every_load_counts_whoever_asks_for_it(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_text("w")
    loads = Loads()
    load = loads.counted(Path.read_text)
    assert loads.count == 0
    assert [load(weights, encoding="ascii"), load(weights)] == ["w", "w"]
    assert loads.count == 2
