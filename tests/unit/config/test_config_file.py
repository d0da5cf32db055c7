"""Single values in the user's config.toml; everything else is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondam.config import load
from ondam.config.file import keep
from ondam.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def test_a_missing_file_is_made(file: Path) -> None:
    keep(file, {"llm": {"model": "a", "engine": "llama_server"}})
    assert file.read_text() == '[llm]\nmodel = "a"\nengine = "llama_server"\n'
    assert load(file).llm.model == "a"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '# mine\n[llm] # here\n# why\nmodel = "old"   # mine\n\n[[canned]]\nmatch="a"\nsay="b"\n',
            '# mine\n[llm] # here\n# why\nmodel = "new"   # mine\n\n[[canned]]\nmatch="a"\nsay="b"\n',
        ),
        ('llm.model = "old"\nlanguage = "ko"\n', 'llm.model = "new"\nlanguage = "ko"\n'),
        ('llm = { model = "old", max_tokens = 9 }\n', 'llm = { model = "new", max_tokens = 9 }\n'),
        ('\ufefflanguage = "ko"\n', '\ufefflanguage = "ko"\n\n[llm]\nmodel = "new"\n'),
        ('[llm]\r\nmodel = "old" # x\r\n', '[llm]\r\nmodel = "new" # x\r\n'),
    ],
    ids=["comments", "dotted", "inline", "mark", "windows"],
)
def test_comments_spaces_and_other_keys_stay(file: Path, before: str, after: str) -> None:
    keep(written(file, before), {"llm": {"model": "new"}})
    assert file.read_bytes().decode() == after
    assert load(file).llm.model == "new"


@pytest.mark.parametrize("before", ["[llm\n", "llm = 3\n", 'llm.modell = "x"\n', "\xff"])
def test_a_file_that_is_no_configuration_stays_as_it_is_and_the_reason_is_told(
    file: Path, before: str
) -> None:
    raw = before.encode("latin-1")
    written(file, "")
    file.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        keep(file, {})
    assert caught.value.message("en").text
    assert file.read_bytes() == raw
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_trying_writes_nothing(file: Path) -> None:
    keep(file, {})
    assert not file.exists()


def test_a_link_stays_a_link_and_the_mode_stays(file: Path, tmp_path: Path) -> None:
    real = written(tmp_path / "dotfiles" / "ondam.toml", 'language = "ko"\n')
    real.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(real)
    keep(file, {"tts": {"engine": "piper"}})
    assert file.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    assert load(file).tts.engine == "piper"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file")
    with pytest.raises(ConfigError) as caught:
        keep(tmp_path / "there" / "config.toml", {"llm": {"model": "a"}})
    assert caught.value.code == "switch_not_kept"


def test_links_that_lead_round_in_a_circle_are_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.symlink_to("config.toml")
    with pytest.raises(ConfigError) as raised:
        keep(file, {"llm": {"model": "new"}})
    assert raised.value.code == "switch_not_kept"


def test_a_link_to_where_nothing_is_yet_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.symlink_to("kept/elsewhere.toml")
    keep(file, {"llm": {"model": "new"}})
    assert file.is_symlink()
    assert (tmp_path / "kept" / "elsewhere.toml").read_text() == '[llm]\nmodel = "new"\n'
