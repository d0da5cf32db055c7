from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon
from tests.unit.supervisor.test_environment import MANIFEST

from ondam.cli.engines import command
from ondam.errors import EngineError
from ondam.messages import Phrase
from ondam.planner.gpus import Card, Sight
from ondam.planner.plan import PlannedEngine


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine of the user's own that needs no package."""
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp")  # short; nothing is put there
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    folder = tmp_path / "data" / "engines" / "toy"
    folder.mkdir(parents=True)
    (folder / "engine.toml").write_text(MANIFEST)
    (folder / "requirements.lock").write_text("")
    return folder


def told(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def state() -> str:
    rows = json.loads(told("list", "--json"))
    return next(str(row["environment"]) for row in rows if row["name"] == "toy")


@pytest.mark.parametrize(
    ("setting", "isolated", "required"),
    [("possible", True, False), ("require", True, True), ("off", False, False)],
)
def test_what_is_warmed_is_cut_off_from_the_network_unless_the_configuration_leaves_it(
    toy: Path, monkeypatch: pytest.MonkeyPatch, setting: str, isolated: bool, required: bool
) -> None:
    config = toy.parents[2] / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[supervisor]\nisolation = "{setting}"\n')
    planned = PlannedEngine("supertonic", "tts", "", None, None, "cpu", 1, "en")
    given: list[tuple[bool, bool]] = []
    monkeypatch.setattr("ondam.cli.engines._launched", lambda found, here: (planned,))
    monkeypatch.setattr(
        "ondam.supervisor.warm.warm", lambda *_, isolated, required, **__: given.append((isolated, required))
    )
    told("warm")
    assert given == [(isolated, required)]


@pytest.mark.usefixtures("toy")
def test_a_users_own_engine_is_listed_beside_the_shipped_ones() -> None:
    names = {row["name"] for row in json.loads(told("list", "--json"))}
    assert {"toy", "piper", "faster_whisper"} <= names
    assert "toy" in told("list")


def test_an_engine_is_built_brought_up_to_date_and_removed(toy: Path) -> None:
    assert state() == "missing"
    assert told("build", "toy") == "toy: environment built\n"
    assert state() == "current"
    (toy / "serve.py").write_text("")
    assert state() == "stale"
    (built,) = json.loads(told("build", "toy", "--json"))
    assert (built["outcome"], built["environment"]) == ("updated", "current")
    assert "pip install" in told("logs", "toy", "--build")
    assert json.loads(told("remove", "toy", "--json")) == {"name": "toy", "removed": True}
    assert state() == "missing"
    assert told("remove", "toy") == "toy had no environment.\n"


def test_a_variant_is_built_by_name_once_the_driver_can_run_it(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = 'locks = { cpu = "requirements.lock", cu13 = "cu13.lock" }, drivers = { cu13 = "580" }'
    (toy / "engine.toml").write_text(MANIFEST.replace('locks = { cpu = "requirements.lock" }', tables))
    (toy / "cu13.lock").write_text("")
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight(trouble=Phrase("gpu_none"), absent=True))
    with pytest.raises(EngineError) as raised:
        CliRunner().invoke(command, ["build", "toy", "--variant", "cu13"], catch_exceptions=False)
    assert raised.value.code == "engine_driver_absent" and state() == "missing"
    card = Card("A card", "580.1", "8.9", 1, 1, 0, None, None)
    monkeypatch.setattr("ondam.planner.gpus.look", lambda: Sight((card,)))
    (built,) = json.loads(told("build", "toy", "--json"))
    assert (built["variant"], built["variants"]) == ("cu13", ["cpu", "cu13"])
    (built,) = json.loads(told("build", "toy", "--variant", "cpu", "--json"))
    assert (built["variant"], built["outcome"], built["environment"]) == ("cpu", "built", "current")


def test_a_variant_whose_compiler_is_missing_is_refused_before_anything_begins(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = 'locks = { cpu = "requirements.lock", cuda = "requirements.lock" }, tools = { cuda = "nvcc" }'
    (toy / "engine.toml").write_text(MANIFEST.replace('locks = { cpu = "requirements.lock" }', tables))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError) as raised:
        CliRunner().invoke(command, ["build", "toy", "--variant", "cuda"], catch_exceptions=False)
    assert (raised.value.code, raised.value.facts["tool"]) == ("engine_tool_missing", "nvcc")
    assert state() == "missing" and not (toy.parents[2] / "state").exists()


def test_for_another_machine_any_driver_will_do(toy: Path) -> None:
    tables = 'locks = { cu13 = "requirements.lock" }, drivers = { cu13 = "9999" }'
    (toy / "engine.toml").write_text(MANIFEST.replace('locks = { cpu = "requirements.lock" }', tables))
    assert told("build", "toy", "--variant", "cu13", "--any-driver") == "toy: environment built\n"


@pytest.mark.usefixtures("toy")
def test_a_variant_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(EngineError) as raised:
        CliRunner().invoke(command, ["build", "toy", "--variant", "cu99"], catch_exceptions=False)
    assert str(raised.value) == 'The engine toy has no "cu99" variant; it has: cpu.'


@pytest.mark.parametrize("verb", ["build", "remove", "logs"])
@pytest.mark.usefixtures("toy")
def test_an_unknown_engine_is_refused_with_the_nearest_name(verb: str) -> None:
    with pytest.raises(EngineError) as raised:
        CliRunner().invoke(command, [verb, "toi"], catch_exceptions=False)
    assert raised.value.code == "engine_unknown" and "toy" in str(raised.value.facts["near"])


@pytest.mark.usefixtures("toy")
def test_the_end_of_a_log_is_shown(toy: Path) -> None:
    with pytest.raises(EngineError) as raised:
        CliRunner().invoke(command, ["logs", "toy"], catch_exceptions=False)
    assert raised.value.code == "engine_log_missing"
    log = toy.parents[2] / "state" / "logs" / "engine-toy.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\nthree\n")
    assert told("logs", "toy", "-n", "2") == "two\nthree\n"
    assert json.loads(told("logs", "toy", "-n", "1", "--json"))["lines"] == ["three"]


async def test_restart_asks_the_daemon(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("engines", "restart", "faster_whisper")
    assert (done.code, done.out) == (0, "faster_whisper is being started anew.\n")
    assert daemon.asked == [("restart_engine", "faster_whisper")]
    assert (await ondam("engines", "restart", "faster_whisper", "--json")).json == {"name": "faster_whisper"}


async def test_restart_without_a_daemon_says_what_to_type(ondam: Ondam) -> None:
    done = await ondam("engines", "restart", "faster_whisper", "--json")
    assert done.json["error"]["code"] == "daemon_not_running"
