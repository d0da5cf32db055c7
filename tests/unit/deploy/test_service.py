"""Installing, removing and asking the service, against a systemd that writes down what it is told."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ondam.deploy import service as services
from ondam.deploy.service import Service, program
from ondam.deploy.unit import Installed, Scope
from ondam.errors import ServiceError
from ondam.messages import message


@dataclass
class Systemd:
    """``fails``: the beginning of the command that fails."""

    fails: str = "nothing"
    shown: str = ""
    told: list[str] = field(default_factory=list)

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        line = " ".join(command)
        self.told.append(line)
        failed = line.startswith(self.fails)
        return subprocess.CompletedProcess(list(command), int(failed), self.shown, "No medium found\n")


@dataclass
class Machine:
    root: Path
    systemd: Systemd = field(default_factory=Systemd)

    def boot(self) -> None:
        (self.root / "run/systemd/system").mkdir(parents=True)

    def service(self, scope: Scope, **environ: str) -> Service:
        given = {"XDG_CONFIG_HOME": str(self.root / "home/.config"), **environ}
        return Service(scope, given, self.root, self.systemd)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Wherever the tests run, this Python is not at home.
    monkeypatch.setattr(services, "HIDDEN", ("/home-of-nobody",))
    return Machine(tmp_path)


RUNS = Path("/opt/온담/bin/ondam")


def test_a_users_service_is_written_enabled_and_started(machine: Machine) -> None:
    machine.boot()
    service = machine.service("user", ONDAM_HOME="/집", ONDAM_DEBUG="1")
    done = service.install(RUNS, start=True)
    assert done.unit == machine.root / "home/.config/systemd/user/ondam.service"
    text = done.unit.read_text("utf-8")
    assert 'Environment="ONDAM_HOME=/집"' in text and "ONDAM_DEBUG" not in text
    assert machine.systemd.told == [
        "systemctl --user daemon-reload",
        "systemctl --user enable ondam.service",
        "systemctl --user --no-block restart ondam.service",
    ]
    assert [phrase.code for phrase in done.told] == ["service_ends_at_logout"], "lingering is explained"
    assert done.unit.stat().st_mode & 0o777 == 0o644


def test_lingering_is_turned_on_only_for_whoever_asks(machine: Machine) -> None:
    machine.boot()
    user = services.user_name()
    assert machine.service("user").install(RUNS, start=False, linger=True).told == ()
    assert f"loginctl enable-linger {user}" in machine.systemd.told
    linger = machine.root / "var/lib/systemd/linger" / user
    linger.parent.mkdir(parents=True)
    linger.touch()
    machine.systemd.told.clear()
    assert machine.service("user").install(RUNS, start=False).told == ()
    assert not [line for line in machine.systemd.told if "loginctl" in line or "restart" in line]


def test_the_systems_service_brings_its_user_its_groups_and_its_folder(machine: Machine) -> None:
    machine.boot()
    done = machine.service("system", SUDO_USER="ada").install(RUNS, start=True)
    assert done.unit == machine.root / "etc/systemd/system/ondam.service"
    declared = machine.root / "etc/sysusers.d/ondam.conf"
    assert "\nu ondam - " in declared.read_text() and "\ng ondam-admin -" in declared.read_text()
    assert (machine.root / "etc/ondam").is_dir()
    assert machine.systemd.told[0] == f"systemd-sysusers {declared}"
    assert [phrase.facts for phrase in done.told] == [{"user": "ada"}]
    machine.service("system").uninstall()
    assert not done.unit.exists() and not declared.exists() and (machine.root / "etc/ondam").exists()
    assert "systemctl disable --now ondam.service" in machine.systemd.told


@pytest.mark.skipif(os.geteuid() != 0, reason="only root leaves what is root's")
def test_what_root_typed_before_there_was_a_user_does_not_keep_the_daemon_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.chown", lambda path, _user, _group: os.chown(path, 12345, 12346))
    left = machine.root / "var/lib/ondam/data/models"
    left.mkdir(parents=True)
    (left / "weights").touch()
    machine.service("system").install(RUNS, start=False)
    for path in (left, left.parent, left.parent.parent, left / "weights"):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


def test_without_systemd_the_unit_waits_for_one(machine: Machine) -> None:
    done = machine.service("user").install(RUNS, start=True)
    assert done.unit.exists() and not done.started
    assert (machine.systemd.told, machine.service("user").state()) == ([], {})
    assert done.told[0].facts == {"command": "systemctl --user start ondam.service"}


def test_a_unit_of_somebody_elses_is_neither_overwritten_nor_removed(machine: Machine) -> None:
    service = machine.service("user")
    service.path.parent.mkdir(parents=True)
    service.path.write_text("[Service]\nExecStart=/usr/bin/other\n")
    with pytest.raises(ServiceError) as raised:
        service.install(RUNS, start=True)
    assert raised.value.code == "service_not_ours"
    with pytest.raises(ServiceError) as raised:
        service.uninstall()
    assert raised.value.code == "service_not_ours"
    assert "other" in service.path.read_text()


def test_installing_again_writes_the_unit_anew(machine: Machine) -> None:
    service = machine.service("user")
    service.install(Path("/old/ondam"), start=False)
    service.install(RUNS, start=False)
    found = service.installed()
    assert isinstance(found, Installed) and found.program == RUNS
    assert [path.name for path in service.path.parent.iterdir()] == ["ondam.service"]


def test_only_root_changes_the_systems_services(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceError) as raised:
        machine.service("system").install(RUNS, start=True)
    assert raised.value.message("en").next == "sudo ondam service install --system"
    assert not (machine.root / "etc").exists()


def test_root_is_given_the_commands_without_sudo(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(ServiceError) as raised:
        machine.service("system").uninstall()
    assert raised.value.message("en").next == "ondam service install --system"
    (groups, _) = machine.service("system").install(RUNS, start=False).told
    assert message(groups.code, "en", **groups.facts).next == "usermod --append --groups ondam NAME"


def test_the_systems_daemon_is_not_given_a_program_that_it_cannot_see(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "HIDDEN", ("/home",))
    with pytest.raises(ServiceError) as raised:
        machine.service("system").install(Path("/home/ada/.venv/bin/ondam"), start=True)
    assert raised.value.facts == {"path": Path("/home/ada/.venv/bin/ondam")}
    machine.service("user").install(Path("/home/ada/.venv/bin/ondam"), start=False)


def test_what_systemd_refuses_is_told_in_its_words(machine: Machine) -> None:
    machine.boot()
    machine.systemd.fails = "systemctl --user daemon-reload"
    with pytest.raises(ServiceError) as raised:
        machine.service("user").install(RUNS, start=True)
    assert str(raised.value) == "`systemctl --user daemon-reload` failed: No medium found."


def test_users_that_cannot_be_made_are_told_with_what_to_type(machine: Machine) -> None:
    machine.boot()
    machine.systemd.fails = "systemd-sysusers"
    told = machine.service("system").install(RUNS, start=False).told
    assert told[0].code == "service_no_users"


def test_the_state_is_what_systemd_shows(machine: Machine) -> None:
    machine.boot()
    machine.systemd.shown = "ActiveState=activating\nStatusText=loading llama_server=x\nOther=1\nempty\n"
    assert machine.service("system").state() == {
        "ActiveState": "activating",
        "StatusText": "loading llama_server=x",
    }
    assert machine.systemd.told[-1].startswith("systemctl show ondam.service --property=LoadState")


def test_a_bundles_launcher_is_started_whatever_version_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = tmp_path / "versions/1"
    launcher = tmp_path / "bin/ondam"
    launcher.parent.mkdir()
    launcher.touch()
    monkeypatch.setattr(services, "carried", lambda: version)
    assert program() == launcher
    monkeypatch.setattr(services, "carried", lambda: None)
    assert program().name == "ondam" and program().is_absolute()


def test_without_a_home_the_unit_has_no_place(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    with pytest.raises(ServiceError) as raised:
        machine.service("user", XDG_CONFIG_HOME="").install(RUNS, start=False)
    assert raised.value.code == "service_no_home"
    monkeypatch.undo()
    with pytest.raises(ServiceError) as raised:
        machine.service("user", XDG_CONFIG_HOME="config").install(RUNS, start=False)
    assert raised.value.code == "service_no_home", "where it would lie depends on where one stands"


@pytest.mark.parametrize("place", ["etc/ondam", "var/lib/ondam", "etc/sysusers.d"])
def test_a_place_that_cannot_be_made_is_told(machine: Machine, place: str) -> None:
    in_the_way = machine.root / place
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file")
    with pytest.raises(ServiceError) as raised:
        machine.service("system").install(RUNS, start=False)
    assert raised.value.code == "service_unwritable" and str(in_the_way) in str(raised.value)


def test_a_unit_that_cannot_be_removed_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    service = machine.service("user")
    service.install(RUNS, start=False)

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(ServiceError) as raised:
        service.uninstall()
    assert raised.value.code == "service_unwritable" and "Read-only" in str(raised.value)
