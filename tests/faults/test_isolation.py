"""Engines have no network: what the status says, what a setting changes, and that nothing else does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest
from tests.fakes.engine.rig import Rig, planned, until

from ondam.places import Places
from ondam.supervisor.isolation import Isolation
from ondam.supervisor.leash import leashed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing takes a network away")


async def test_an_engine_has_no_network_and_the_status_says_how(home: Places) -> None:
    async with Rig(home, planned("stt")) as rig:
        await rig.start()
        (engine,) = rig.fleet.status()
        assert engine.isolation is not None
        assert (engine.isolation.network, engine.isolation.closed) == ("none", True)
        assert "filter" in engine.isolation.means
        assert (engine.state, engine.faults) == ("ready", ())


async def test_isolation_can_be_switched_off_and_the_status_says_so(home: Places) -> None:
    async with Rig(home, planned("stt"), isolation="off") as rig:
        await rig.start()
        (engine,) = rig.fleet.status()
        assert (engine.state, engine.isolation) == ("ready", Isolation("open"))


async def test_where_isolation_is_required_an_engine_that_would_keep_a_network_never_begins(
    home: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ondam.supervisor.process.leashed",
        lambda command, network, required: leashed(command, required=required),
    )
    began = tmp_path / "began"
    async with Rig(home, planned("stt", calls=str(began)), isolation="require") as rig:
        await rig.start()
        (engine,) = rig.fleet.status()
        assert (engine.state, [fault.code for fault in engine.faults]) == ("failed", ["engine_not_isolated"])
        assert engine.restarts == 0
    assert not began.exists()


async def test_where_isolation_is_required_an_engine_that_the_kernel_shows_open_is_not_used(
    home: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It says what it was to have, and the kernel shows nothing.
    monkeypatch.setattr("ondam.supervisor.process.leashed", lambda command, network, required: list(command))
    async with Rig(home, planned("stt"), isolation="require") as rig:
        await rig.start()
        (engine,) = rig.fleet.status()
        assert (engine.state, [fault.code for fault in engine.faults]) == ("failed", ["engine_not_isolated"])


async def test_what_an_engine_starts_has_no_network_either_and_ends_with_it(
    home: Places, tmp_path: Path
) -> None:
    tried = tmp_path / "tried.json"
    async with Rig(home, planned("stt", calls=str(tried), grandchild=True)) as rig:
        await rig.start()
        await until(tried.exists)
        pid = rig.fleet.status()[0].pid
    found = json.loads(tried.read_text())
    assert {found[name] for name in ("udp", "tcp", "child")} == {"EAFNOSUPPORT"}
    assert pid is not None and not psutil.pid_exists(pid)
