"""The tray's environment: when it serves, and when it has to be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondam.deploy import tray
from ondam.errors import DesktopError
from ondam.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(*[tmp_path] * 4)


def made(places: Places, version: str = "3.11") -> tray.TrayHome:
    """One with a Python that says that it is ``version``."""
    home = tray.home(places)
    (home.root / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    home.python.parent.mkdir()
    home.python.write_text(f"#!/bin/sh\necho {version}\n")
    home.python.chmod(0o755)
    tray._write(home)
    return home


def refused(places: Places) -> str:
    with pytest.raises(DesktopError) as raised:
        tray.ready(places)
    return raised.value.code


def test_one_that_was_made_is_ready(places: Places) -> None:
    assert refused(places) == "tray_not_installed"
    home = made(places)
    assert tray.ready(places) == home


def test_another_python_of_the_systems_wants_another_environment(places: Places) -> None:
    home = made(places)
    home.python.write_text("#!/bin/sh\necho 3.13\n")
    assert refused(places) == "tray_not_installed"


def test_a_python_that_is_gone_does_so_too(places: Places) -> None:
    home = made(places)
    home.python.unlink()
    home.python.symlink_to("/nowhere/python3.11")
    assert refused(places) == "tray_not_installed"


def test_making_it_again_replaces_one_whose_python_was_exchanged(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(places)
    home.python.write_text("#!/bin/sh\necho 3.13\n")

    def build(root: Path, python: Path, mirrors: object, log: Path) -> None:
        fresh = tray.TrayHome(root)
        (root / "lib" / "python3.13" / "site-packages").mkdir(parents=True)
        fresh.python.parent.mkdir()
        fresh.python.write_text("#!/bin/sh\necho 3.13\n")
        fresh.python.chmod(0o755)

    monkeypatch.setattr(tray, "_check", lambda python: None)
    monkeypatch.setattr(tray, "_build", build)
    assert tray.install(places, Path("/usr/bin/python3"), {}) == home
    assert [path.name for path in home.root.glob("lib/*")] == ["python3.13"]
    assert tray.ready(places) == home
