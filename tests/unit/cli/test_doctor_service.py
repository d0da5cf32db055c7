"""What the doctor says of the service."""

from __future__ import annotations

import grp
import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ondam import __version__
from ondam.cli.doctor_service import service
from ondam.cli.finding import Finding
from ondam.deploy.service import Service, user_name


def nothing(command: Sequence[str]) -> CompletedProcess[str]:
    return CompletedProcess(list(command), 0, "", "")


def look(root: Path, *, system_runs: bool = False) -> list[tuple[bool, str, str]]:
    environ = {"XDG_CONFIG_HOME": str(root / "config")}
    runtime = root / "run/ondam"
    if system_runs:
        runtime.mkdir(parents=True, exist_ok=True)
    found: list[Finding] = list(
        service(Service("user", environ, root, nothing), Service("system", environ, root, nothing), runtime)
    )
    return [(one.ok, one.text.replace(str(root), ""), one.next) for one in found]


def unit(root: Path) -> Path:
    environ = {"XDG_CONFIG_HOME": str(root / "config")}
    return Service("user", environ, root, nothing).install(Path("/bin/true"), start=False).unit


def test_whoever_starts_it_by_hand_lacks_nothing(tmp_path: Path) -> None:
    assert look(tmp_path) == []


def test_a_unit_of_this_version_is_well_and_of_another_is_written_anew(tmp_path: Path) -> None:
    path = unit(tmp_path)
    assert look(tmp_path) == [(True, "/config/systemd/user/ondam.service is of this version.", "")]
    path.write_text(path.read_text().replace(f"# ondam {__version__},", "# ondam 0.0.9,"))
    assert look(tmp_path)[0][0] is True, "that version's says the same"
    path.write_text(path.read_text().replace("WatchdogSec=30", "WatchdogSec=60"))
    ((ok, text, then),) = look(tmp_path)
    assert (ok, then) == (False, "ondam service install")
    assert text.endswith("is of Ondam 0.0.9, not of this one.")


def test_a_unit_that_starts_what_is_gone_and_one_of_somebody_elses(tmp_path: Path) -> None:
    path = unit(tmp_path)
    path.write_text(path.read_text().replace('"/bin/true" up', '"/opt/gone/ondam" up'))
    assert look(tmp_path)[0][:2] == (
        False,
        "/config/systemd/user/ondam.service starts /opt/gone/ondam, which is not there.",
    )
    path.write_text("[Service]\nExecStart=/bin/true\n")
    assert look(tmp_path)[0][0] is True


def test_lingering_is_explained_and_is_no_fault(tmp_path: Path) -> None:
    unit(tmp_path)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    ok, _, then = look(tmp_path)[1]
    assert (ok, then) == (True, f"loginctl enable-linger {user_name()}")
    linger = tmp_path / "var/lib/systemd/linger" / user_name()
    linger.parent.mkdir(parents=True)
    linger.touch()
    assert len(look(tmp_path)) == 1


@pytest.mark.parametrize(
    ("members", "groups", "ok", "then"),
    [
        ([], [], False, "sudo usermod --append --groups ondam ada"),
        (["ada"], [], False, "Log out and in again."),
        (["ada"], [777], True, ""),
    ],
)
def test_who_may_use_the_systems_daemon(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: list[str],
    groups: list[int],
    ok: bool,
    then: str,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getgroups", lambda: groups)
    monkeypatch.setattr("ondam.cli.doctor_service.user_name", lambda: "ada")
    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "x", 777, members)))
    ((found, _, advice),) = look(tmp_path, system_runs=True)
    assert (found, advice) == (ok, then)
