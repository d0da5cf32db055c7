from __future__ import annotations

import grp
import os
import pwd
import socket
import stat
from pathlib import Path

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control import access, wire
from ondam.control.access import EVERYTHING, NOTHING, USE, Access, groups_of, listening_socket, peer_uid
from ondam.control.client import Client
from ondam.control.server import Server
from ondam.errors import ConfigError, ControlError

DAEMON, MEMBER, ADMIN, STRANGER = 900, 1001, 1002, 1003
GROUPS = {MEMBER: {"users", "ondam"}, ADMIN: {"ondam", "ondam-admin"}, STRANGER: {"users"}}


@pytest.mark.parametrize(
    ("uid", "alone", "system"),
    [
        (0, EVERYTHING, EVERYTHING),
        (DAEMON, EVERYTHING, EVERYTHING),
        (MEMBER, NOTHING, USE),
        (ADMIN, NOTHING, EVERYTHING),
        (STRANGER, NOTHING, NOTHING),
    ],
)
def test_who_may_do_what(
    uid: int, alone: frozenset[wire.Permission], system: frozenset[wire.Permission]
) -> None:
    assert Access(DAEMON, None, lambda uid: GROUPS[uid]).of(uid) == alone
    assert Access(DAEMON, "ondam", lambda uid: GROUPS[uid]).of(uid) == system


def test_ending_the_daemon_and_reading_engine_logs_are_for_admins() -> None:
    assert {route.path for route in wire.ROUTES if route.permission == "admin"} == {
        "/api/shutdown",
        "/api/switch",
        "/api/engines/{name}/restart",
        "/api/engines/{name}/log",
        "/api/reload",
        "/api/diagnostics",
    }


def test_looking_is_all_that_read_allows() -> None:
    assert all(route.method == "GET" for route in wire.ROUTES if route.permission == "read")


def test_groups_come_from_the_user_database() -> None:
    user = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(user.pw_gid).gr_name in groups_of(os.getuid())
    assert groups_of(2**31 - 7) == frozenset()


def test_the_kernel_tells_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == os.getuid()


async def test_a_caller_without_the_permission_is_told_which_one_it_needs(
    daemon: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.control.server.peer_uid", lambda connection: STRANGER)
    with pytest.raises(ControlError) as caught:
        await client.shutdown()
    assert caught.value.code == "control_not_permitted"
    assert caught.value.facts == {"uid": STRANGER, "permission": "admin"}
    with pytest.raises(ControlError):
        await client.status()
    assert daemon.asked == []


async def test_what_outlives_the_daemon_and_what_it_keeps_is_for_admins(
    daemon: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.control.server.peer_uid", lambda connection: STRANGER)
    monkeypatch.setattr(Access, "of", lambda self, uid: USE)
    await client.set_settings({"llm.max_tokens": 9})
    await client.choose_devices({"speaker": "hdmi"})
    for change in (
        client.set_settings({"llm.max_tokens": 9}, keep=True),
        client.set_settings({"llm.max_tokens": 9, "journal.keep_audio": True}),
        client.choose_devices({"speaker": "hdmi"}, keep=True),
    ):
        with pytest.raises(ControlError) as caught:
            await change
        assert caught.value.code == "control_not_permitted"
    assert [name for name, *_ in daemon.asked] == ["set_settings", "choose_devices"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_users_socket_is_for_that_user_alone(socket_path: Path) -> None:
    with listening_socket(socket_path, None):
        assert (mode(socket_path.parent), mode(socket_path)) == (0o700, 0o600)


def test_the_systems_socket_is_for_the_group_too(socket_path: Path) -> None:
    own = grp.getgrgid(os.getgid())
    with listening_socket(socket_path, own.gr_name):
        assert (mode(socket_path.parent), mode(socket_path)) == (0o750, 0o660)
        assert socket_path.stat().st_gid == own.gr_gid


def test_a_group_that_does_not_exist_is_named_with_the_command_that_makes_it(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ControlError) as caught:
        listening_socket(socket_path, "no-such-group")
    assert caught.value.message("ko").next == "sudo groupadd --system no-such-group"


def test_a_folder_that_was_open_is_closed(socket_path: Path) -> None:
    socket_path.parent.mkdir(parents=True)
    socket_path.parent.chmod(0o777)
    with listening_socket(socket_path, None):
        assert mode(socket_path.parent) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(socket_path: Path, tmp_path: Path) -> None:
    socket_path.parent.parent.mkdir(exist_ok=True)
    socket_path.parent.symlink_to(tmp_path)
    with pytest.raises(ConfigError) as caught:
        listening_socket(socket_path, None)
    assert caught.value.code == "folder_not_ours"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(socket_path: Path) -> None:
    socket_path.parent.mkdir(parents=True)
    os.chown(socket_path.parent, 12345, -1)
    with pytest.raises(ConfigError) as caught:
        listening_socket(socket_path, None)
    assert caught.value.code == "folder_not_ours"


def test_a_socket_left_by_a_daemon_that_died_is_replaced(socket_path: Path) -> None:
    listening_socket(socket_path, None).close()
    assert socket_path.exists()
    listening_socket(socket_path, None).close()


async def test_a_socket_that_answers_is_left_alone(
    server: Server, daemon: FakeDaemon, client: Client, socket_path: Path
) -> None:
    with pytest.raises(ControlError) as caught:
        await Server(daemon, socket_path).start()
    assert caught.value.code == "daemon_already_running"
    assert (await client.status())["pid"] == 77


async def test_stopping_leaves_a_successors_socket(server: Server, socket_path: Path) -> None:
    socket_path.unlink()  # noqa: ASYNC240 - a local file
    with access.listening_socket(socket_path, None):
        await server.stop()
        assert socket_path.exists()  # noqa: ASYNC240 - a local file
