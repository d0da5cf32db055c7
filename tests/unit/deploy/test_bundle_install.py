"""What is left to be done once a version is installed, and what is told of it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ondam.deploy import bundle_install, bundle_target
from ondam.deploy.bundle_install import afterwards
from ondam.deploy.bundle_manifest import MARKER, Entry, Environment, Manifest, Target
from ondam.deploy.bundle_versions import Version, Versions

MANIFEST = Manifest(
    version="1.0",
    created="2026-01-01T00:00:00+00:00",
    target=Target("linux", "x86_64", "3.11", release="bookworm"),
    environments=(Environment("ondam", "locks/ondam.txt"),),
    models=(),
    debian=("toy",),
    files=(
        Entry("locks/ondam.txt", "lock", 1, "0" * 64),
        Entry("config.toml", "config", 1, "1" * 64),
        Entry("debian/toy_1_all.deb", "debian", 1, "2" * 64),
    ),
)


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Versions:
    """One version, which is not current; the user has nothing yet."""
    monkeypatch.setattr(bundle_target, "is_root", lambda: False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(bundle_install, "debian_lacking", lambda *_: [])
    made = Versions(tmp_path / "내 자리")
    folder = made.folder(MANIFEST.identity)
    folder.mkdir(parents=True)
    (folder / MARKER).write_bytes(MANIFEST.as_bytes())
    (folder / "config.toml").write_text("# brought\n")
    return made


def told(versions: Versions) -> dict[str, str]:
    version = Version(versions.folder(MANIFEST.identity), MANIFEST)
    return {line.code: str(line) for line in afterwards(version, versions, versions.root.parent / "bin")}


def test_a_configuration_is_put_in_place_only_for_the_version_that_runs(
    versions: Versions, tmp_path: Path
) -> None:
    file = tmp_path / "home/ondam/config.toml"
    brought = versions.folder(MANIFEST.identity) / "config.toml"
    assert str(brought) in told(versions)["bundle_config_kept"] and not file.exists()
    versions.switch(Version(versions.folder(MANIFEST.identity), MANIFEST))
    assert "bundle_config_put" in told(versions) and file.read_text() == "# brought\n"
    assert "bundle_config_there" in told(versions)


def test_a_configuration_that_cannot_be_put_is_told_as_that(versions: Versions, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder would be")
    versions.switch(Version(versions.folder(MANIFEST.identity), MANIFEST))
    line = told(versions)["bundle_config_failed"]
    assert str(tmp_path / "home/ondam/config.toml") in line and "Not a directory" in line


def test_packages_are_told_as_a_shell_takes_them(versions: Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = versions.folder(MANIFEST.identity) / "debian/toy_1_all.deb"
    monkeypatch.setattr(bundle_install, "debian_lacking", lambda *_: [lacking])
    monkeypatch.setattr(bundle_target, "release", lambda: "bookworm")
    command = told(versions)["bundle_debian_lacking"].splitlines()[1]
    assert shlex.split(command)[-1] == str(lacking)
