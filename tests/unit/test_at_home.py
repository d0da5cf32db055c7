"""``~somebody`` whom nobody knows, wherever a path may be written: told like a file that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondam.at_home import at_home
from ondam.config import load
from ondam.errors import ConfigError
from ondam.places import places

NOBODY = "~nobody-of-that-name/file"


def test_a_home_is_found_and_one_that_nobody_knows_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/온담")
    assert at_home("~/a b") == Path("/home/온담/a b")
    assert at_home("a/~") == Path("a/~")
    with pytest.raises(FileNotFoundError):
        at_home(NOBODY)


@pytest.mark.parametrize(
    ("table", "key", "path"),
    [
        ("audit", "path", NOBODY),
        ("audit", "path", "a\\u0000b"),
        ("llm", "tools", NOBODY),
        ("form", "schema", NOBODY),
    ],
)
def test_the_configuration_says_so_with_its_key(tmp_path: Path, table: str, key: str, path: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[{table}]\n{key} = "{path}"', "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.code == "config_problems"
    assert f"{table}.{key}" in str(caught.value)


def test_so_does_the_place_of_everything() -> None:
    with pytest.raises(ConfigError) as caught:
        places({"ONDAM_HOME": NOBODY})
    assert caught.value.code == "home_closed"


def test_so_does_a_machines_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ONDAM_SYSTEM_CONFIG", NOBODY)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "config.toml")
    assert caught.value.code == "file_unreadable"
