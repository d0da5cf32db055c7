"""Versions beside each other: which runs, how to go back, what is shared, what is thrown away."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.bundle.small import HERE, Silent, Small, install, says, small

from ondam.cli.bundle import command
from ondam.deploy.bundle_install import Installation, put_on_path, unpack
from ondam.deploy.bundle_manifest import MARKER, Entry, Manifest
from ondam.deploy.bundle_target import python_of
from ondam.deploy.bundle_versions import Versions
from ondam.errors import BundleError


def ondam(*arguments: object) -> Any:
    """``ondam bundle … --json``."""
    done = CliRunner().invoke(command, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(*arguments: object) -> str:
    done = CliRunner().invoke(command, list(map(str, arguments)))
    assert isinstance(done.exception, BundleError), done.output
    return done.exception.code


def test_install_list_rollback_and_prune(one: Small, two: Small, tmp_path: Path) -> None:
    root = tmp_path / "root"
    versions = Versions(root)
    at = ("--root", root)
    for bundle in (one, two):
        ondam("install", bundle.path, "--unsigned", *at, "--bin", tmp_path / "bin")
    command_on_path = tmp_path / "bin/ondam"
    assert subprocess.check_output([command_on_path, "--version"], text=True) == "ondam 2.0\n"
    assert [(row["version"], row["state"]) for row in ondam("list", *at)] == [
        ("1.0", "previous"),
        ("2.0", "current"),
    ]
    assert ondam("prune", *at)["removed"] == []
    ondam("rollback", *at)
    assert subprocess.check_output([command_on_path, "--version"], text=True) == "ondam 1.0\n"
    ondam("rollback", *at)
    assert says(versions) == "ondam 2.0"
    assert ondam("prune", "--previous", *at)["removed"] == [one.manifest.identity]
    assert refusal("rollback", *at) == "bundle_nothing_before"
    assert refusal("rollback", "--to", "1.0", *at) == "bundle_version_unknown"
    assert says(versions) == "ondam 2.0"


def test_weights_are_there_once_and_go_with_the_last_version_that_has_them(
    one: Small, two: Small, versions: Versions, tmp_path: Path
) -> None:
    other = small(tmp_path / "other", "4.0", model=b"other weights")
    folders = [install(bundle, versions).folder for bundle in (one, two, other)]
    files = [folder / "models/toy/model.bin" for folder in folders]
    assert files[0].stat().st_ino == files[1].stat().st_ino != files[2].stat().st_ino
    # The two names of one model, the two versions, and the store: one file.
    assert files[0].stat().st_nlink == 5
    assert sorted(path.stat().st_size for path in versions.blobs.iterdir()) == [2, 13, 21_000]
    versions.remove(versions.named(one.manifest.identity))
    versions.remove(versions.named(two.manifest.identity))
    assert [path.stat().st_size for path in versions.leftovers()] == [21_000]
    assert ondam("prune", "--root", versions.root)["freed"] >= 21_000
    assert files[2].read_bytes() == b"other weights"


def test_a_rollback_that_was_killed_between_its_links_loses_no_way_back(
    one: Small, two: Small, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(one, versions)
    newer = install(two, versions)

    def killed(place: Versions, link: str, identity: str) -> None:
        point(place, link, identity)
        raise KeyboardInterrupt

    point = Versions._point
    with monkeypatch.context() as once, pytest.raises(KeyboardInterrupt):
        once.setattr(Versions, "_point", killed)
        versions.switch(versions.named(one.manifest.identity))
    assert (versions.current(), versions.previous()) == (newer.identity, one.manifest.identity)
    assert ondam("prune", "--root", versions.root)["removed"] == []
    ondam("rollback", "--root", versions.root)
    assert (versions.current(), versions.previous()) == (one.manifest.identity, newer.identity)


def test_what_an_interrupted_installation_left_is_pruned(one: Small, versions: Versions) -> None:
    install(one, versions)
    unfinished = versions.folder("9.9-0000000000")
    unfinished.mkdir()
    (versions.incoming / "9.9-0000000000").mkdir(parents=True)
    assert [version.identity for version in versions.all()] == [one.manifest.identity]
    assert sorted(ondam("prune", "--root", versions.root)["removed"]) == ["9.9-0000000000", "incoming"]
    assert says(versions) == "ondam 1.0"


def test_weights_of_an_unfinished_version_go_with_it(one: Small, versions: Versions, tmp_path: Path) -> None:
    install(one, versions)
    other = small(tmp_path / "other", "4.0", model=b"other weights")
    folder = install(other, versions).folder
    versions.switch(versions.named(one.manifest.identity))
    (folder / MARKER).unlink()
    removed = ondam("prune", "--root", versions.root)["removed"]
    assert hashlib.sha256(b"other weights").hexdigest() in removed and folder.name in removed
    assert ondam("prune", "--root", versions.root) == {"removed": [], "freed": 0}
    assert says(versions) == "ondam 1.0"


def test_a_version_that_something_runs_from_is_kept(one: Small, two: Small, versions: Versions) -> None:
    old = install(one, versions).folder
    install(two, versions)
    command_line = [str(old / "venv/bin/python"), "-c", "print(flush=True); input()"]
    with subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        try:
            assert ondam("prune", "--previous", "--root", versions.root)["removed"] == []
        finally:
            process.kill()
    assert ondam("prune", "--previous", "--root", versions.root)["removed"] == [one.manifest.identity]


def test_who_switches_is_told_what_still_runs_and_what_to_type(
    one: Small, two: Small, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*arguments: object) -> list[str]:
        done = CliRunner().invoke(command, [*map(str, arguments), "--root", str(versions.root)])
        return [line for line in done.output.splitlines() if "still runs" in line]

    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    monkeypatch.setattr("ondam.deploy.bundle_target.is_root", lambda: False)
    old = install(one, versions)
    command_line = [str(old.folder / "venv/bin/python"), "-c", "print(flush=True); input()"]
    with subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        try:
            (line,) = told("install", two.path, "--unsigned", "--bin", versions.root)
            assert f"Ondam {old.identity} still runs." in line
            assert line.endswith(" systemctl --user restart ondam")
            assert told("rollback") == [], "what runs is current again"
            assert told("rollback") == [line]
        finally:
            process.kill()
    assert told("rollback") == told("rollback") == []


def test_a_bundle_can_be_installed_without_switching_to_it(
    one: Small, two: Small, versions: Versions
) -> None:
    install(one, versions)
    ondam("install", two.path, "--unsigned", "--no-switch", "--root", versions.root, "--bin", versions.root)
    assert says(versions) == "ondam 1.0"
    ondam("rollback", "--to", "2.0", "--root", versions.root)
    assert says(versions) == "ondam 2.0"


def test_installing_what_is_there_only_switches(one: Small, two: Small, versions: Versions) -> None:
    folder = install(one, versions).folder
    made = folder.stat().st_ctime_ns
    install(two, versions)
    told = Silent()
    Installation(one.path, versions, told).run(None, unsigned=True)
    assert folder.stat().st_ctime_ns == made
    assert any(f"Ondam {one.manifest.identity} is here already" in line for line in told.lines)
    assert says(versions) == "ondam 1.0"


def test_a_step_that_fails_leaves_the_version_that_runs(
    one: Small, versions: Versions, tmp_path: Path
) -> None:
    install(one, versions)
    bad = small(tmp_path / "bad", "5.0")
    # Its hash is the manifest's, and it is no list of wheels.
    lock = bad.sources["locks/ondam.txt"]
    entry = next(entry for entry in bad.manifest.files if entry.kind == "lock")
    lock.write_bytes(b"x" * entry.size)
    manifest = Manifest.from_bytes(
        bad.manifest.as_bytes().replace(entry.sha256.encode(), _sha256(lock).encode()), "here"
    )
    path = bad.write(tmp_path / "bad.bundle", manifest)
    with pytest.raises(BundleError) as caught:
        install(Small(path, manifest, bad.sources), versions)
    assert caught.value.code == "bundle_step_failed"
    assert Path(str(caught.value.facts["log"])).read_text("utf-8").startswith("$ ")
    assert says(versions) == "ondam 1.0"


@pytest.mark.parametrize("hint", ["said", "full"])
def test_a_disk_that_fills_up_meanwhile_is_what_is_told(
    one: Small, versions: Versions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hint: str
) -> None:
    said = "No space left on device (os error 28)" if hint == "said" else "Bus error"
    monkeypatch.setattr("ondam.deploy.bundle_install._uv", lambda *_: fails(tmp_path / "uv", said))
    if hint == "full":
        # What is installed has room at first.
        monkeypatch.setattr("ondam.deploy.bundle_target.refuse", lambda *_, **__: None)
        monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 4096}))
    with pytest.raises(BundleError) as caught:
        install(one, versions)
    assert caught.value.code == "bundle_disk_full"
    assert "type the same again" in caught.value.message("en").next
    monkeypatch.undo()
    install(one, versions)
    assert says(versions) == "ondam 1.0"


def fails(path: Path, said: str) -> Path:
    """A program that says this and fails."""
    path.write_text(f"#!/bin/sh\necho '{said}'\nexit 2\n")
    path.chmod(0o755)
    return path


def test_a_command_that_somebody_else_put_there_is_left_alone(versions: Versions, tmp_path: Path) -> None:
    (tmp_path / "ondam").write_text("mine")
    assert put_on_path(versions, tmp_path).code == "bundle_command_taken"
    assert (tmp_path / "ondam").read_text() == "mine"


def test_a_python_that_is_carried_is_used_and_goes_with_its_last_version(
    one: Small, two: Small, versions: Versions, tmp_path: Path
) -> None:
    from ondam.deploy.bundle_create import _packed

    minor = HERE.pythons[0]
    folder = tmp_path / "python"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / f"python{minor}"
    program.write_text(f'#!/bin/sh\nexec "{python_of(minor)}" "$@"\n')
    program.chmod(0o755)
    (tmp_path / "work").mkdir()
    packed = _packed(folder, minor, tmp_path / "work")
    entry = Entry("python/python.tar", "python", packed.stat().st_size, _sha256(packed))
    target = replace(one.manifest.target, python=minor)
    manifest = replace(one.manifest, files=(*one.manifest.files, entry), target=target)
    carrying = Small(tmp_path / "b", manifest, {**one.sources, entry.path: packed})
    carrying.write(carrying.path, manifest)
    install(carrying, versions)
    assert says(versions) == "ondam 1.0"
    assert [path.name for path in versions.pythons.iterdir()] == [entry.sha256]
    install(two, versions)
    ondam("prune", "--previous", "--root", versions.root)
    assert list(versions.pythons.iterdir()) == []
    with pytest.raises(BundleError) as caught:
        _packed(folder, "3.99", tmp_path / "work")
    assert caught.value.code == "bundle_python_lacks"


def test_a_python_that_is_packed_under_any_umask_can_be_run_by_everybody(tmp_path: Path) -> None:
    from ondam.deploy.bundle_create import _packed

    (tmp_path / "python" / "bin").mkdir(parents=True, mode=0o700)
    program = tmp_path / "python" / "bin" / "python3.11"
    program.touch(0o700)
    program.with_name("notes").touch(0o600)
    (tmp_path / "work").mkdir()
    with tarfile.open(_packed(tmp_path / "python", "3.11", tmp_path / "work")) as packed:
        modes = {member.name: member.mode for member in packed.getmembers()}
    assert modes == {"bin": 0o755, "bin/python3.11": 0o755, "bin/notes": 0o644}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", ["../escaped", "link/escaped", None])
def test_a_pythons_tar_stays_in_its_folder_and_what_is_no_tar_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool, name: str | None
) -> None:
    if old:  # as in Python 3.11.2, which Debian 12 has
        monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    packed, folder = tmp_path / "python.tar", tmp_path / "folder"
    folder.mkdir()
    if name is None:
        packed.write_text("no tar")
    else:
        with tarfile.open(packed, "w") as out:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, ".."
            out.addfile(link)
            out.addfile(tarfile.TarInfo(name))
    with pytest.raises(BundleError) as caught:
        unpack(packed, folder, "3.11")
    assert caught.value.code == "bundle_python_lacks"
    assert not (tmp_path / "escaped").exists()


def test_two_installations_wait_for_each_other(one: Small, versions: Versions) -> None:
    told = Silent()
    command_line = ["flock", str(versions.root / ".lock"), "sh", "-c", "echo held; sleep 0.4"]
    versions.root.mkdir(parents=True)
    with subprocess.Popen(command_line, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        install(one, versions, told)
    assert any("is going on; waiting" in line for line in told.lines)


def test_a_place_that_may_not_be_written_is_told(one: Small, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError) as caught:
        install(one, Versions(tmp_path / "file" / "root"))
    assert caught.value.code == "bundle_root_unwritable"


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../escaped"},
        {"path": "/etc/passwd"},
        {"path": "models/../../x"},
        {"sha256": "../../../etc/passwd"},
        {"size": -1},
        {"kind": "virus"},
        {"path": "ondam-bundle.json"},
        {"path": "venv/bin/python"},
        {"size": 1 << 100},
    ],
)
def test_a_manifest_that_leads_outside_is_refused(one: Small, change: dict[str, object]) -> None:
    told = json.loads(one.manifest.as_bytes())
    told["files"][3] |= change
    with pytest.raises(BundleError) as caught:
        Manifest.from_bytes(json.dumps(told).encode(), "here")
    assert caught.value.code == "bundle_manifest_broken"


@pytest.mark.parametrize(
    "change",
    [
        {"environments": []},
        {"environments": [{"name": "ondam", "lock": "locks/other.txt", "variant": "cpu"}]},
        {"installed_size": 1 << 100},
        {"format": "1"},
    ],
)
def test_a_manifest_that_nothing_can_be_made_of_is_refused(one: Small, change: dict[str, object]) -> None:
    told = json.loads(one.manifest.as_bytes()) | change
    with pytest.raises(BundleError) as caught:
        Manifest.from_bytes(json.dumps(told).encode(), "here")
    assert caught.value.code == "bundle_manifest_broken"


@pytest.mark.parametrize(
    "text", [b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000, b'{"format": 1' + b"0" * 9000]
)
def test_a_manifest_that_is_a_bomb_is_refused(text: bytes) -> None:
    with pytest.raises(BundleError) as caught:
        Manifest.from_bytes(text, "here")
    assert caught.value.code == "bundle_manifest_broken"


def test_weights_that_rotted_are_written_anew_by_the_next_installation(
    one: Small, two: Small, versions: Versions
) -> None:
    install(one, versions)
    (entry,) = (entry for entry in one.manifest.files if entry.path == "models/toy/model.bin")
    with (versions.blobs / entry.sha256).open("r+b") as blob:
        blob.write(b"X")
    folder = install(two, versions).folder
    assert _sha256(folder / entry.path) == _sha256(versions.blobs / entry.sha256) == entry.sha256


def test_a_strangers_hand_cannot_hold_up_an_installation(one: Small, versions: Versions) -> None:
    versions.root.mkdir(parents=True)
    (versions.root / ".lock").touch(0o644)
    install(one, versions)
    assert (versions.root / ".lock").stat().st_mode & 0o777 == 0o600


def test_a_manifest_of_a_later_format_says_so(one: Small) -> None:
    told = json.loads(one.manifest.as_bytes()) | {"format": 2}
    with pytest.raises(BundleError) as caught:
        Manifest.from_bytes(json.dumps(told).encode(), "here")
    assert caught.value.code == "bundle_format_newer"


def test_a_manifest_is_read_as_it_was_written(one: Small) -> None:
    assert Manifest.from_bytes(one.manifest.as_bytes(), "here") == one.manifest


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_launcher_follows_links_and_says_where_nothing_is(versions: Versions, tmp_path: Path) -> None:
    versions.write_launcher()
    link = tmp_path / "ondam"
    link.symlink_to(versions.launcher)
    done = subprocess.run([link], capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 1
    assert f"no version is installed in {versions.root}" in done.stderr
