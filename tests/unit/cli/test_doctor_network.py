from __future__ import annotations

import pytest

from ondam.cli import doctor_network
from ondam.cli.doctor_network import network
from ondam.config import load
from ondam.supervisor.isolation import Isolation


@pytest.mark.parametrize(
    ("found", "setting", "ok", "said"),
    [
        ("none namespace filter", "possible", True, "Engines have no network here (namespace, filter)."),
        ("none filter", "possible", True, "abstract sockets"),
        ("none", "possible", False, "cannot take the network away"),
        ("none namespace filter", "off", True, 'supervisor.isolation is "off"'),
    ],
)
def test_what_keeps_engines_from_the_network_is_told(
    found: str, setting: str, ok: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    monkeypatch.setattr("ondam.cli.doctor_network.sys.platform", "linux")
    monkeypatch.setattr(doctor_network, "attainable", lambda network: Isolation.parse(found))
    (finding,) = network(load(None, {"supervisor": {"isolation": setting}}))
    assert (finding.check, finding.ok) == ("network", ok)
    assert said in finding.text


def test_where_nothing_can_be_done_it_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.cli.doctor_network.sys.platform", "darwin")
    (finding,) = network(load(None))
    assert finding.ok
    (finding,) = network(load(None, {"supervisor": {"isolation": "require"}}))
    assert not finding.ok
