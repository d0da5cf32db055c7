"""What is kept is all listed, each file once, and goes for good when it is to."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import filelock
import numpy as np
import pytest
from click.testing import CliRunner

from ondam import privacy
from ondam.cli.privacy import command
from ondam.config import Config, load
from ondam.errors import ConfigError, ControlError
from ondam.journal.keep import Keep
from ondam.journal.recorder import Recorder
from ondam.journal.turn import Turn
from ondam.places import Places, places
from ondam.privacy import OF_PROGRAM, OF_USE, inventory, remove
from ondam.types import TurnId

WORD = "차돌박이"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Places]:
    short = tempfile.mkdtemp(prefix="o-")  # a socket's path may have 107 bytes
    yield places({"ONDAM_HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": short})
    shutil.rmtree(short)


@pytest.fixture
def config() -> Config:
    return load(None, {"journal": {"keep_text": True, "keep_audio": True}, "audit": {"enabled": True}})


@pytest.fixture
def used(here: Places, config: Config) -> Places:
    """Folders as after a day of use with everything kept."""
    recorder = Recorder(here.journal, Keep.of(config, here))
    turn = Turn(TurnId(1), "s", YESTERDAY, transcript=WORD, heard="네.", outcome="answered")
    turn.sound = np.ones(1600, np.int16)
    recorder.record(turn, turn.as_json())
    recorder.close(10)
    for path in (
        here.logs / "daemon.log",
        here.state / "measured-memory.json",
        here.state / "journal.sqlite.broken-20260101T000000",
        here.state / "audit.jsonl.1",
        here.state / "something-new",
        here.config_file,
        here.models / "m" / "model.gguf",
        here.environments / "piper" / "pyvenv.cfg",
        here.user_engines / "mine" / "engine.toml",
        here.data / "caches" / "supertonic" / "x.engine",
        here.runtime / "engine-piper.pid",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#" * 10)
    return here


def test_every_file_is_listed_once_under_its_kind(used: Places, config: Config) -> None:
    found = {kept.kind: kept for kept in inventory(config, used)}
    listed = Counter(path for kept in found.values() for path in kept.each())
    there = [
        path for root in (used.config.parent, used.runtime) for path in root.rglob("*") if path.is_file()
    ]
    assert listed == Counter(there)
    assert [path.name for path in found["other"].each()] == ["something-new"]
    assert [path.name for path in found["text"].each()] == ["texts.sqlite"]
    assert [path.suffix for path in found["audio"].each()] == [".flac"]
    assert sorted(path.name for path in found["audit"].each()) == ["audit.jsonl", "audit.jsonl.1"]
    assert found["text"].since == found["journal"].since == YESTERDAY.isoformat(timespec="milliseconds")
    assert (found["text"].days, found["audio"].days, found["journal"].days) == (30, 7, 90)
    assert found["models"].bytes == 10


def test_what_tells_most_goes_first_and_nothing_of_the_program_goes_unasked(
    used: Places, config: Config
) -> None:
    gone: list[Path] = []
    remove(OF_USE, config, used, gone.append)
    assert [path.name for path in gone[:1]] == ["texts.sqlite"]
    assert gone[1].suffix == ".flac"
    left = sorted(
        str(path.relative_to(used.config.parent)) for path in used.config.parent.rglob("*") if path.is_file()
    )
    assert left == [
        "config/config.toml",
        "data/caches/supertonic/x.engine",
        "data/engines/mine/engine.toml",
        "data/environments/piper/pyvenv.cfg",
        "data/models/m/model.gguf",
        "state/daemon.lock",
        "state/something-new",
    ]
    assert list((used.state / "kept").iterdir()) == []


def test_one_kind_alone_goes(used: Places, config: Config) -> None:
    remove(["audio"], config, used, lambda path: None)
    found = {kept.kind: kept.files for kept in inventory(config, used)}
    assert (found["audio"], found["text"], found["journal"]) == (0, 1, 1)


def test_contents_are_overwritten_before_the_name_goes(
    used: Places, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bytes] = []
    unlink = Path.unlink

    def looked_at(path: Path, missing_ok: bool = False) -> None:
        if path.name == "texts.sqlite":
            found.append(path.read_bytes())
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", looked_at)
    remove(["text"], config, used, lambda path: None)
    assert found == [bytes(len(found[0]))]
    assert len(found[0]) > 0


def test_what_has_another_name_or_is_a_link_keeps_its_contents(
    used: Places, config: Config, tmp_path: Path
) -> None:
    mine, other = tmp_path / "mine.txt", tmp_path / "other.txt"
    for path in (mine, other):
        path.write_text("mine")
    (used.logs / "link.log").symlink_to(mine)
    os.link(other, used.logs / "hard.log")
    remove(["logs"], config, used, lambda path: None)
    assert (mine.read_text(), other.read_text()) == ("mine", "mine")
    assert not used.logs.exists()


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (None, "ondam down && ondam privacy remove …"),
        (
            "ondam",
            "sudo systemctl stop ondam && sudo ondam --system privacy remove …; sudo systemctl start ondam",
        ),
    ],
)
def test_a_running_daemon_keeps_its_files_and_is_named(
    used: Places, config: Config, monkeypatch: pytest.MonkeyPatch, group: str | None, told: str
) -> None:
    monkeypatch.setenv("SUDO_UID", "1000")
    with filelock.FileLock(used.lock), pytest.raises(ControlError) as caught:
        remove(OF_USE, config, replace(used, group=group), lambda path: None)
    assert caught.value.code == "privacy_daemon_runs"
    assert caught.value.message().next == told
    assert {kept.kind: kept.files for kept in inventory(config, used)}["text"] == 1


def test_a_file_that_cannot_be_deleted_is_named(
    used: Places, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ConfigError) as caught:
        remove(["logs"], config, used, lambda path: None)
    assert caught.value.facts["path"] == used.logs / "daemon.log"


def test_nothing_is_made_by_looking_or_by_removing_nothing(here: Places, config: Config) -> None:
    assert sum(kept.files for kept in inventory(config, here)) == 0
    assert remove(OF_USE, config, here, lambda path: None) == 0
    assert not here.state.exists()


SOMEBODY = 54_321
"""No user of this machine: who may do nothing but what the files say."""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root comes to other people's folders")


def somebodys(here: Places) -> None:
    for root in (here.config.parent, here.config.parent.parent):
        os.chown(root, SOMEBODY, SOMEBODY)
        for path in root.rglob("*"):
            os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


@only_root
@pytest.mark.parametrize("there", [False, True], ids=["no lock yet", "a lock that root left before"])
def test_root_leaves_nothing_in_somebodys_folders_that_they_cannot_use(
    used: Places, config: Config, there: bool
) -> None:
    somebodys(used)
    if there:
        used.lock.touch(0o600)
    remove(OF_USE, config, used, lambda path: None)
    assert used.lock.exists()
    foreign = [path for path in used.config.parent.rglob("*") if path.lstat().st_uid != SOMEBODY]
    assert foreign == []


@only_root
def test_a_file_of_roots_under_the_name_of_the_lock_is_not_given_away(
    used: Places, config: Config, tmp_path: Path
) -> None:
    somebodys(used)
    secret = tmp_path / "secret"
    secret.touch(0o600)
    os.link(secret, used.lock)
    remove(["logs"], config, used, lambda path: None)
    assert secret.stat().st_uid == 0


def test_every_kind_can_be_removed_or_is_no_ones_to_keep() -> None:
    kinds = {kept.kind for kept in inventory(load(None), places({"ONDAM_HOME": "/nowhere"}))}
    assert kinds - {*OF_USE, *OF_PROGRAM} == {"runtime", "other"}


def run(here: Places, *arguments: str, answer: str = "") -> tuple[int, str, str]:
    environ = {"ONDAM_HOME": str(here.config.parent), "ONDAM_LANGUAGE": "en"}
    environ["XDG_RUNTIME_DIR"] = str(here.runtime.parent)
    done = CliRunner().invoke(command, arguments, input=answer, env=environ, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value or 0, done.stdout, done.stderr


def test_the_list_says_that_there_are_only_timings(here: Places) -> None:
    _, shown, _ = run(here, "list")
    assert "Nothing that was said or answered is kept." in shown
    assert "text " in shown and "never (off)" in shown


def test_the_list_is_json_too(used: Places) -> None:
    _, shown, _ = run(used, "list", "--json")
    kept = {one["kind"]: one for one in json.loads(shown)["kept"]}
    assert kept["text"]["holds"] == "words"
    assert kept["text"]["files"] == 1
    assert kept["text"]["written"] is False  # there is some, and no more is added
    assert set(kept["journal"]) == {
        "kind", "paths", "holds", "files", "bytes", "since", "days", "most_bytes", "written",
    }  # fmt: skip


def test_removing_asks_and_no_is_no(used: Places, config: Config) -> None:
    status, _, asked = run(used, "remove", "all", answer="n\n")
    assert status == 1
    assert "Delete all of this for good?" in asked
    assert "what was said and answered" in asked
    status, shown, _ = run(used, "remove", "text", "audio", answer="y\n")
    assert (status, shown.splitlines()[0][:15]) == (0, "Deleted 2 files")
    status, shown, _ = run(used, "remove", "all", "--yes", "--json")
    told = json.loads(shown)
    assert told["removed"] == list(OF_USE)
    assert len(told["files"]) == 6


def test_a_broken_configuration_keeps_nobody_from_removing(used: Places) -> None:
    used.config_file.write_text("[journal")
    status, _, told = run(used, "remove", "text", "--yes")
    assert status == 0
    assert "is not valid TOML" in told
    assert not (used.state / "kept" / "texts.sqlite").exists()


def test_a_kind_that_there_is_not_is_refused_with_those_that_there_are(used: Places) -> None:
    with pytest.raises(Exception, match="there is no kind 'everything'; there are all, text, audio"):
        run(used, "remove", "everything", "--yes")
    assert privacy.OF_PROGRAM[0] == "config"


@pytest.mark.parametrize("name", ["folder", "notes", "device"])
def test_a_wrong_audit_path_costs_nobody_a_file(used: Places, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    (mine / "folder").mkdir(parents=True)
    os.mkfifo(mine / "device")
    for path in (mine / "folder" / "letter", mine / "notes.md", mine / "notes.2.txt"):
        path.write_text("mine")
    config = load(None, {"audit": {"enabled": True, "path": str(mine / name)}})
    gone: list[Path] = []
    remove(OF_USE, config, used, gone.append)
    assert [path for path in gone if mine in path.parents] == []
    assert sorted(path.name for path in mine.rglob("*")) == [
        "device", "folder", "letter", "notes.2.txt", "notes.md",
    ]  # fmt: skip
    assert used.state / "audit.jsonl" in gone


def test_an_audit_path_without_a_folder_is_below_the_state(used: Places) -> None:
    config = load(None, {"audit": {"enabled": True, "path": "for/auditors"}})
    assert Keep.of(config, used).audit == used.state / "for" / "auditors"


def test_what_lies_on_another_disk_behind_a_link_goes_and_the_link_stays(
    used: Places, config: Config, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    for moved in (used.sounds, used.texts, used.logs):
        shutil.move(moved, disk / moved.name)
        moved.symlink_to(disk / moved.name)
    (disk / "sounds" / "song.flac").write_text("mine")
    (disk / "logs" / "letter.txt").write_text("mine")
    found = {kept.kind: kept.files for kept in inventory(config, used)}
    assert (found["audio"], found["text"], found["logs"]) == (1, 1, 1)
    remove(OF_USE, config, used, lambda path: None)
    assert sorted(path.name for path in disk.rglob("*") if path.is_file()) == ["letter.txt", "song.flac"]
    assert used.sounds.is_dir() and used.logs.is_dir()


def test_a_configuration_of_a_later_ondam_keeps_nobody_from_removing_either(used: Places) -> None:
    used.config_file.write_text("[ondam]\nschema = 99\n")
    status, _, told = run(used, "remove", "text", "--yes")
    assert status == 0
    assert "written for a later Ondam" in told and "audit.path" in told
    assert not used.texts.exists()
