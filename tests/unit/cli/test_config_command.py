"""``ondam config``: layers, origins, migration, and the daemon that reads it again; ``ondam service``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.config.layers import machine_config
from ondam.deploy import migrate as migrations
from ondam.deploy import service as services
from ondam.deploy.migrate import Steps, renamed
from ondam.places import MACHINE_CONFIG


def write(file: Path, text: str) -> None:
    file.write_text(text)


def read(file: Path) -> str:
    return file.read_text()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "etc" / "config.toml"
    file.parent.mkdir()
    monkeypatch.setenv("ONDAM_SYSTEM_CONFIG", str(file))
    return file


@pytest.fixture
def own(home: Path) -> Path:
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


async def test_show_says_which_line_of_which_file_each_value_is_from(
    ondam: Ondam, machine: Path, own: Path
) -> None:
    write(machine, "[llm]\nmax_tokens = 3\n[audio]\ntail_ms = 1\n")
    write(own, "\n[llm]\nmax_tokens = 4\n")
    shown = (await ondam("config", "show", "--origin")).out.splitlines()
    assert f"llm.max_tokens = 4  # {own}:3" in shown
    assert f"audio.tail_ms = 1  # {machine}:4" in shown
    assert 'audio.echo = "auto"  # default' in shown
    told = (await ondam("config", "show", "--origin", "--json")).json
    assert told["audio.tail_ms"] == {"value": 1, "file": str(machine), "line": 4}
    assert told["audio.echo"] == {"value": "auto", "file": None, "line": None}


async def test_check_names_both_files_and_where_each_problem_stands(
    ondam: Ondam, machine: Path, own: Path
) -> None:
    write(own, "")
    write(machine, "")
    assert (await ondam("config", "check", "--json")).json["files"] == [str(machine), str(own)]
    write(machine, "[detect]\nvad_treshold = 1\n")
    done = await ondam("config", "check")
    assert done.code == 3
    assert f"{machine}:2: detect.vad_treshold" in done.err


async def test_an_older_file_is_told_of_and_written_anew_on_request(
    ondam: Ondam, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await ondam("config", "migrate")).code == 3, "there is no file yet"
    write(own, "[audio]\ntail = 7  # short\n")
    invented: Steps[migrations.Values] = Steps(newest=2, steps={1: renamed("audio.tail", "audio.tail_ms")})
    monkeypatch.setattr(migrations, "CONFIG", invented)
    monkeypatch.setattr("ondam.config.layers.CONFIG", invented)
    checked = await ondam("config", "check")
    assert checked.code == 0 and "ondam config migrate" in checked.out
    kept = own.with_name("config.toml.schema-1")
    assert (await ondam("config", "migrate", "--json")).json == {"path": str(own), "kept": str(kept)}
    assert "tail_ms = 7" in read(own) and "schema = 2" in read(own)
    assert "of this version already" in (await ondam("config", "migrate")).out


async def test_reload_names_what_is_in_force_and_what_has_to_wait(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("config", "reload")
    assert done.out.splitlines() == [
        "In force now: llm.max_tokens.",
        "In force with the next start: metrics.listen.",
    ]
    assert set((await ondam("config", "reload", "--json")).json) == {"applied", "needs_restart"}


async def test_system_uses_the_systems_folders_whatever_the_shell_exports(
    ondam: Ondam, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_SYSTEM", "")  # put back afterwards, as is ONDAM_HOME
    assert (await ondam("config", "path")).out == f"{home}/config/config.toml\n"
    assert (await ondam("--system", "config", "path")).out == "/etc/ondam/config.toml\n"
    assert machine_config() == MACHINE_CONFIG, "its configuration counts, too"


async def test_the_unit_is_printed_installed_told_of_and_removed(
    ondam: Ondam, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "a b"))
    monkeypatch.setattr(services.Service, "running", False)
    unit = home / "a b/systemd/user/ondam.service"
    assert (await ondam("service", "status")).code == 1
    printed = (await ondam("service", "install", "--print")).out
    assert f'Environment="ONDAM_HOME={home}"' in printed and not unit.exists()
    told = (await ondam("service", "install", "--json")).json
    assert (told["unit"], told["started"]) == (str(unit), False)
    assert told["told"][0]["next"] == "systemctl --user start ondam.service"
    assert unit.read_text() == printed
    status = (await ondam("service", "status", "--json")).json
    assert (status["installed"], status["current"], status["changed"]) == (True, True, False)
    assert str(unit) in (await ondam("service", "uninstall")).out
    assert not unit.exists()
    gone = await ondam("service", "uninstall")
    assert gone.code == 1 and "ondam service install" in gone.err
