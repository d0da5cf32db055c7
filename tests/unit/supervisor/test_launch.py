from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes.engine.rig import engine_folder

from ondam.errors import EngineError
from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor.family import Identity
from ondam.supervisor.launch import Home, launch
from ondam.supervisor.manifest import Manifest
from ondam.supervisor.process import Launch
from ondam.types import Stage

PLACES = Places(Path("/c"), Path("/d"), Path("/s"), Path("/r/ondam-0123456789ab"))
HOME = Home(Path("/env/bin/python"), Path("/env/x"))
DAEMON = Identity(7, 1.5)


def manifest(command: list[str], env: dict[str, str] | None = None) -> Manifest:
    found = engine_folder("stt").manifest
    return found.model_copy(
        update={"launch": found.launch.model_copy(update={"command": command, "env": env or {}})}
    )


def launched(
    of: Manifest, environ: dict[str, str] | None = None, stage: Stage = "stt", *, isolated: bool = True
) -> Launch:
    planned = PlannedEngine("ear", stage, "base", Path("/m"), None, "cpu", 3, "ko", {"word": "온담"})
    return launch(
        planned,
        manifest=of,
        home=HOME,
        places=PLACES,
        daemon=DAEMON,
        environ=environ or {},
        isolated=isolated,
    )


def test_every_placeholder_of_the_contract_is_filled() -> None:
    names = [
        "python",
        "folder",
        "socket",
        "report",
        "model",
        "model_id",
        "device",
        "threads",
        "language",
        "options",
    ]
    command = launched(manifest([f"{{{name}}}" for name in names])).command
    assert command == [
        "/env/bin/python",
        "/env/x",
        "/r/ondam-0123456789ab/engine-ear.sock",
        "/r/ondam-0123456789ab/engine-ear.report.json",
        "/m",
        "base",
        "cpu",
        "3",
        "ko",
        '{"word": "온담"}',
    ]


def test_the_network_is_the_manifests_or_whatever_there_is() -> None:
    own = manifest(["x"])
    alone = own.model_copy(update={"launch": own.launch.model_copy(update={"network": "loopback"})})
    assert [launched(one).network for one in (own, alone)] == ["none", "loopback"]
    assert [launched(one, isolated=False).network for one in (own, alone)] == ["open", "open"]


def test_a_placeholder_that_does_not_exist_is_named() -> None:
    with pytest.raises(EngineError) as raised:
        launched(manifest(["{sockets}"]))
    assert raised.value.facts["name"] == "sockets"


def test_braces_that_are_no_placeholder_stay() -> None:
    assert launched(manifest(['{"a": {}, "B": {C}}'])).command == ['{"a": {}, "B": {C}}']


def test_cards_are_counted_by_bus_as_the_planner_counted_them() -> None:
    env = launched(manifest(["x"]), {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}).env
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_the_hub_is_closed_and_the_daemons_own_python_paths_are_not_handed_on() -> None:
    env = launched(manifest(["x"]), {"PYTHONPATH": "/evil", "HF_HUB_OFFLINE": "0", "LANG": "ko_KR.UTF-8"}).env
    assert "PYTHONPATH" not in env
    assert (env["HF_HUB_OFFLINE"], env["TRANSFORMERS_OFFLINE"], env["LANG"]) == ("1", "1", "ko_KR.UTF-8")


def test_threads_are_shared_out_and_the_manifest_has_the_last_word() -> None:
    env = launched(manifest(["x"], {"OMP_NUM_THREADS": "{threads}0"})).env
    assert (env["OMP_NUM_THREADS"], env["MKL_NUM_THREADS"]) == ("30", "3")


def test_only_the_recognizers_idle_threads_sleep() -> None:
    assert launched(manifest(["x"])).env["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in launched(manifest(["x"]), stage="llm").env


def test_a_process_carries_the_marks_of_instance_daemon_and_engine() -> None:
    found = launched(manifest(["x"], {"ONDAM_INSTANCE": "forged"}))
    assert found.marks == {
        "ONDAM_INSTANCE": "ondam-0123456789ab",
        "ONDAM_DAEMON": "7:1.50",
        "ONDAM_ENGINE": "ear",
    }
    assert found.env.items() >= found.marks.items()
    assert json.loads(json.dumps(found.command)) == ["x"]
