"""The units: what systemd says of them, odd paths, and what an installed one says of itself."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ondam import __version__
from ondam.deploy import unit as units
from ondam.deploy.unit import NAME, Installed, Scope, shipped, unit
from ondam.errors import ServiceError

EXPOSURES: dict[Scope, int] = {"system": 20, "user": 69}
"""Tenths: with systemd 252 the system's unit is at 1.9 of 10, and a user's, which is judged as if it were
root's, at 6.8. Whoever loosens one has to say so here."""

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


def security(tmp_path: Path, scope: Scope, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / NAME).write_text(unit(scope, program(tmp_path), {}), "utf-8")
    command = ["systemd-analyze", "security", "--offline=true", *options, str(tmp_path / NAME)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_systemd
@pytest.mark.parametrize("scope", ["user", "system"])
def test_a_unit_is_confined_as_far_as_was_agreed(tmp_path: Path, scope: Scope) -> None:
    done = security(tmp_path, scope, f"--threshold={EXPOSURES[scope]}")
    assert done.returncode == 0, done.stdout


def left_out(scope: Scope) -> dict[str, str]:
    """Directives that a unit does without, and the reasons that stand there."""
    block = shipped(units.SHIPPED[scope]).split("# Left out, and why:\n")[1].split("\n\n")[0]
    text = " ".join(line.removeprefix("#").strip() for line in block.splitlines())
    directive = r"[A-Z]\w+=[\w~@]*"
    groups = re.findall(rf"((?:{directive}, )*{directive}): (\S.*?)(?= {directive}(?:, |: )|$)", text)
    return {name: reason for names, reason in groups for name in names.split(", ")}


def body(scope: Scope) -> str:
    return shipped(units.SHIPPED[scope]).split("# Left out")[0]


@pytest.mark.parametrize("scope", ["user", "system"])
def test_what_was_left_out_is_not_there(scope: Scope) -> None:
    assert len(left_out(scope)) >= 8
    assert not [directive for directive in left_out(scope) if f"\n{directive}" in body(scope)]


@needs_systemd
@pytest.mark.parametrize("scope", ["user", "system"])
def test_whatever_systemd_misses_in_a_unit_is_there_in_part_or_left_out_with_a_reason(
    tmp_path: Path, scope: Scope
) -> None:
    rows = json.loads(security(tmp_path, scope, "--json=short").stdout)
    missed = {row["name"] for row in rows if row["set"] is False}
    assert missed
    # A call filter is a list of its own: each group that it lets be has a reason.
    in_part = set(re.findall(r"^(\w+=)", body(scope), re.MULTILINE)) - {"SystemCallFilter="}
    reasons = {name if "~" in name else name.partition("=")[0] + "=" for name in left_out(scope)}

    def said(name: str) -> bool:
        return name in reasons or bool(
            {f"{one}=" for one in re.findall(r"(\w+)=", name)} & (in_part | reasons)
        )

    assert sorted(name for name in missed if not said(name)) == []


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
