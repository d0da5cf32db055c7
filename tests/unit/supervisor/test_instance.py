from __future__ import annotations

import os
from pathlib import Path

import pytest

from ondam.errors import ConfigError, ControlError
from ondam.places import Places, private_folder
from ondam.supervisor.instance import claim


@pytest.fixture
def home(tmp_path: Path) -> Places:
    return Places(tmp_path / "c", tmp_path / "d", tmp_path / "s", tmp_path / "ondam-0" / "ondam-abc")


def test_there_is_one_daemon_per_folders(home: Places) -> None:
    with claim(home), pytest.raises(ControlError) as raised, claim(home):
        pass
    assert (raised.value.code, raised.value.exit_code) == ("daemon_runs", 4)
    with claim(home):
        pass


def test_sockets_are_cleared_only_by_who_holds_the_lock(home: Places) -> None:
    with claim(home):
        home.control_socket.touch()
        home.engine_report("stt").touch()
        with pytest.raises(ControlError), claim(home):
            pass
        assert home.control_socket.exists()
    home.control_socket.touch()
    with claim(home):
        assert list(home.runtime.iterdir()) == []


def test_the_sockets_folder_is_for_this_user_alone(home: Places) -> None:
    home.runtime.mkdir(parents=True, mode=0o755)
    with claim(home):
        assert home.runtime.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_somebody_else_made_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(ConfigError) as raised:
        private_folder(theirs)
    assert raised.value.code == "folder_not_ours"


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError):
        private_folder(tmp_path / "link")
