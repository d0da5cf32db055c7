"""The units: what systemd says of them, odd paths, and what an installed one says of itself."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ondam import __version__
from ondam.deploy import unit as units
from ondam.deploy.unit import NAME, Installed, Scope, shipped, unit
from ondam.errors import ServiceError

EXPOSURE = 20
"""Tenths: the system's unit is at 1.9 of 10 with systemd 252. Whoever loosens it has to say so here."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")


def program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "ondam"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def verified(tmp_path: Path, scope: Scope, text: str) -> subprocess.CompletedProcess[str]:
    folder = tmp_path / "units"
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_text(text, "utf-8")
    command = ["systemd-analyze", f"--{scope}", "verify", "--recursive-errors=no", str(folder / NAME)]
    environ = {"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@needs_systemd
@pytest.mark.parametrize("scope", ["user", "system"])
@pytest.mark.parametrize("folder", ["plain", "온담 집", "a %h %%i $HOME ${X} ; #"])
def test_systemd_takes_the_unit_and_finds_the_program_wherever_it_lies(
    tmp_path: Path, scope: Scope, folder: str
) -> None:
    runs = program(tmp_path / folder)
    text = unit(scope, runs, {"ONDAM_HOME": f"{tmp_path}/{folder} 'b' \"c\" \\d", "ONDAM_LANGUAGE": "ko"})
    done = verified(tmp_path, scope, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert Installed.read(text).program == runs
    runs.unlink()
    gone = verified(tmp_path, scope, text)
    assert gone.returncode != 0 and "is not executable" in gone.stderr, "it looks where we mean"


@needs_systemd
@pytest.mark.parametrize("scope", ["user", "system"])
def test_a_misspelt_directive_would_be_found(tmp_path: Path, scope: Scope) -> None:
    text = unit(scope, program(tmp_path), {}).replace("WatchdogSec", "WatchdogSeconds")
    assert verified(tmp_path, scope, text).returncode != 0


@needs_systemd
def test_the_systems_unit_is_confined_as_far_as_was_agreed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(unit("system", program(tmp_path), {}), "utf-8")
    command = [
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--threshold={EXPOSURE}",
        str(tmp_path / NAME),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("scope", ["user", "system"])
def test_each_directive_that_was_left_out_has_its_reason(scope: Scope) -> None:
    left_out = shipped(units.SHIPPED[scope]).split("# Left out, and why:\n")[1].split("\n\n")[0]
    given = re.findall(r"^# ([A-Z]\S+=\S*).*: \S", left_out, re.MULTILINE)
    assert len(given) >= 3
    body = shipped(units.SHIPPED[scope]).split("# Left out")[0]
    assert not [directive for directive in given if f"\n{directive}" in body]


@pytest.mark.parametrize("scope", ["user", "system"])
def test_a_slow_load_is_no_failed_start_and_what_no_restart_mends_is_not_tried_again(scope: Scope) -> None:
    lines = unit(scope, Path("/bin/true"), {}).splitlines()
    assert {"Type=notify", "NotifyAccess=main", "Restart=on-failure", "TimeoutStopSec=5"} <= set(lines)
    assert "RestartPreventExitStatus=2 3 4 5 6" in lines
    assert "OOMPolicy=continue" in lines, "an engine without memory is no end of the daemon"


def test_the_environment_of_whoever_installs_goes_into_a_users_unit() -> None:
    lines = unit("user", Path("/x/ondam"), {"ONDAM_HOME": '/집 "a"%b\\c$d'}).splitlines()
    assert 'Environment="ONDAM_HOME=/집 \\"a\\"%%b\\\\c$d"' in lines
    assert 'ExecStart="/x/ondam" up' in lines and 'ExecReload="/x/ondam" config reload' in lines


@pytest.mark.parametrize("path", ["/a\nExecStartPre=/bin/evil", "/a\udcff", "/a'b/x", '/a"b/x', "/a\\b/x"])
def test_a_path_that_no_unit_can_hold_is_refused(path: str) -> None:
    with pytest.raises(ServiceError) as raised:
        unit("user", Path(path), {})
    assert raised.value.code == "service_path_no_text"
    assert raised.value.message("ko").text.isprintable()


def test_an_installed_unit_says_whose_it_is_of_which_version_and_whether_somebody_changed_it() -> None:
    text = unit("system", Path("/opt/온담 집/ondam"), {})
    found = Installed.read(text)
    assert (found.ours, found.version, found.changed, found.current) == (True, __version__, False, True)
    changed = Installed.read(text.replace("WatchdogSec=30", "WatchdogSec=3"))
    assert (changed.ours, changed.changed) == (True, True)
    foreign = Installed.read("[Service]\nExecStart=/usr/bin/ondam up\n")
    assert (foreign.ours, foreign.current, foreign.program) == (False, False, None)


@pytest.mark.parametrize(
    ("scope", "environment"),
    [("system", {}), ("user", {}), ("user", {"ONDAM_HOME": '/집 "a"\\b', "XDG_DATA_HOME": "/d"})],
)
def test_after_an_upgrade_a_unit_is_of_another_version_only_where_this_one_would_write_another(
    scope: Scope, environment: dict[str, str]
) -> None:
    def by_the_last_version(text: str) -> Installed:
        mark, _, body = text.split("\n", 2)
        stamp = f"# ondam 0.0.1, sha256 {hashlib.sha256(body.encode()).hexdigest()}"
        return Installed.read("\n".join((mark, stamp, body)))

    text = unit(scope, Path("/opt/온담 집/ondam"), environment)
    same = by_the_last_version(text)
    assert (same.version, same.changed, same.current) == ("0.0.1", False, True), "nothing to write anew"
    for other in (text.replace("WatchdogSec=30", "WatchdogSec=60"), text.replace("UMask=0077\n", "")):
        assert by_the_last_version(other).current is False
