from __future__ import annotations

from pathlib import Path

from ondam.places import Places


def test_after_a_switch_an_engine_is_found_where_it_answers(tmp_path: Path) -> None:
    here = Places(tmp_path, tmp_path, tmp_path, tmp_path)
    assert here.engine_answers("piper") == tmp_path / "engine-piper.sock"
    (tmp_path / "engine-piper-b.sock").touch()
    assert here.engine_answers("piper") == tmp_path / "engine-piper-b.sock"
    (tmp_path / "engine-piper.sock").touch()
    (tmp_path / "engine-piper-b.sock").unlink()
    assert here.engine_answers("piper") == tmp_path / "engine-piper.sock"
