"""What an earlier Ondam wrote is taken over, what a later one wrote is refused, and nothing is guessed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ondam.config import laid, layers
from ondam.deploy.migrate import Steps, Values, changed, migrate_config, migrated_config, removed, renamed
from ondam.deploy.migrate_journal import JOURNAL, migrate_journal
from ondam.errors import ConfigError, MigrationError
from ondam.journal import recorder
from ondam.journal.recorder import SCHEMA_VERSION, read_turns


def _both(values: Values) -> None:
    renamed("listen.hotkey", "desktop.hotkey")(values)
    changed("audio.tail_s", lambda seconds: round(seconds * 1000))(values)
    renamed("audio.tail_s", "audio.tail_ms")(values)


INVENTED: Steps[Values] = Steps(newest=3, steps={1: _both, 2: removed("audio.driver")})
"""As if this were the third way of writing config.toml."""

OLD = """# mine
[listen]
mode = "push"  # no talking to myself
hotkey = "<ctrl>b"
[audio]
tail_s = 0.25
driver = "oss"
"""


def test_every_step_from_the_files_schema_on_is_taken() -> None:
    old: dict[str, Any] = {"listen": {"hotkey": "x"}, "audio": {"tail_s": 0.25, "driver": "oss"}}
    made, schema = migrated_config(old, Path("c.toml"), INVENTED)
    assert schema == 1
    assert made == {"listen": {}, "audio": {"tail_ms": 250}, "desktop": {"hotkey": "x"}}
    assert old["audio"] == {"tail_s": 0.25, "driver": "oss"}, "what was given stays as it was"
    second = {"ondam": {"schema": 2}, "audio": {"driver": "oss"}, "listen": {"hotkey": "x"}}
    assert migrated_config(second, Path("c.toml"), INVENTED) == (
        {"ondam": {"schema": 3}, "audio": {}, "listen": {"hotkey": "x"}},
        2,
    )


def test_a_file_without_a_stamp_that_is_written_as_today_stays_as_it_is() -> None:
    today = {"audio": {"tail_ms": 250}, "desktop": {"hotkey": "x"}}
    assert migrated_config(today, Path("c.toml"), INVENTED)[0] == today


def test_an_old_and_a_new_name_together_are_refused_and_the_file_is_named() -> None:
    both = {"listen": {"hotkey": "x"}, "desktop": {"hotkey": "y"}}
    with pytest.raises(MigrationError) as raised:
        migrated_config(both, Path("c.toml"), INVENTED)
    assert str(raised.value) == (
        "c.toml sets listen.hotkey, which is called desktop.hotkey now, and desktop.hotkey as well: nobody"
        " knows which of them is meant."
    )


def test_writing_it_anew_keeps_comments_and_a_copy(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(OLD, "utf-8")
    file.chmod(0o640)
    kept = migrate_config(file, INVENTED)
    assert kept == tmp_path / "config.toml.schema-1"
    assert kept.read_text("utf-8") == OLD
    written = file.read_text("utf-8")
    assert written.startswith('# mine\n[listen]\nmode = "push"  # no talking to myself\n')
    assert "tail_ms = 250" in written and "driver" not in written and "schema = 3" in written
    assert file.stat().st_mode & 0o777 == 0o640
    assert migrate_config(file, INVENTED) is None, "once is enough"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.toml", "config.toml.schema-1"]


def test_a_file_of_a_later_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[ondam]\nschema = 9\n[new]\nthing = 1\n", "utf-8")
    for attempt in (lambda: laid(file), lambda: migrate_config(file)):
        with pytest.raises(MigrationError) as raised:
            attempt()
        assert (raised.value.code, raised.value.facts["found"], raised.value.exit_code) == (
            "config_newer",
            9,
            3,
        )
    assert "schema = 9" in file.read_text("utf-8")
    assert "config.toml.schema-1" in raised.value.message("en").next


@pytest.mark.parametrize("stamp", ["'2'", "true", "1.0", "-1"])
def test_a_stamp_that_is_none_is_told(tmp_path: Path, stamp: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[ondam]\nschema = {stamp}\n", "utf-8")
    with pytest.raises(ConfigError) as raised:
        laid(file)
    assert raised.value.code == "config_stamp_broken"


def test_an_older_file_is_read_as_it_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[audio]\ntail_s = 0.25\n", "utf-8")
    monkeypatch.setattr(layers, "CONFIG", INVENTED)
    monkeypatch.setattr("ondam.deploy.migrate.CONFIG", INVENTED)
    (layer,) = laid(file)
    assert (layer.outdated, layer.values) == (True, {"audio": {"tail_ms": 250}})


def journal(path: Path, version: int, tables: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(tables)
        connection.execute(f"PRAGMA user_version={version}")
        record = json.dumps({"session": "a-1", "turn": 1, "outcome": "answered"})
        connection.execute(
            "INSERT INTO turns (session, turn, started_at, outcome, settled, record) VALUES (?,?,?,?,?,?)",
            ("a-1", 1, "2026-01-01T00:00:00.000+00:00", "answered", 1, record),
        )
        connection.commit()


def test_a_journal_of_the_first_schema_keeps_its_rows_and_gets_the_new_table(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal(path, 1, recorder.SCHEMA.split("CREATE TABLE IF NOT EXISTS conditions")[0])
    kept = migrate_journal(path)
    assert kept == tmp_path / "journal.sqlite.schema-1"
    assert kept.stat().st_mode & 0o077 == 0
    assert [turn["session"] for turn in read_turns(path, limit=9)] == ["a-1"]
    assert [turn["session"] for turn in read_turns(kept, limit=9)] == ["a-1"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("SELECT count(*) FROM conditions").fetchone() == (0,)


def test_half_a_copy_of_an_earlier_try_holds_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal(path, 1, recorder.SCHEMA)
    for ending in (".schema-1", ".schema-1.new"):
        path.with_name(path.name + ending).write_bytes(b"half a copy" * 100)
    kept = migrate_journal(path)
    assert kept is not None and [turn["session"] for turn in read_turns(kept, limit=9)] == ["a-1"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal.sqlite", "journal.sqlite.schema-1"]


def test_todays_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    assert migrate_journal(path) is None, "there is none yet"
    journal(path, SCHEMA_VERSION, recorder.SCHEMA)
    before = path.read_bytes()
    assert migrate_journal(path) is None
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["journal.sqlite"]


def test_a_journal_of_a_later_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal(path, SCHEMA_VERSION + 1, recorder.SCHEMA)
    before = path.read_bytes()
    with pytest.raises(MigrationError) as raised:
        migrate_journal(path)
    assert (raised.value.code, raised.value.exit_code) == ("journal_newer", 3)
    assert "move that file away" in raised.value.message("en").next
    assert path.read_bytes() == before


def test_a_step_that_fails_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal(path, 1, recorder.SCHEMA)

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM turns")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        migrate_journal(path, Steps(newest=JOURNAL.newest, steps={1: half}))
    assert [turn["session"] for turn in read_turns(path, limit=9)] == ["a-1"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_broken_journal_is_left_to_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"no database at all" * 100)
    assert migrate_journal(path) is None
    assert path.read_bytes().startswith(b"no database")
