from __future__ import annotations

import pytest
from tests.unit.control.fake_daemon import FakeDaemon, engine

from ondam.cli.status import isolation
from ondam.control import wire

CLOSED: wire.Isolation = {"network": "none", "means": ["namespace", "filter"], "closed": True, "remains": []}
LOOPBACK: wire.Isolation = {**CLOSED, "network": "loopback"}
FILTER: wire.Isolation = {**CLOSED, "means": ["filter"], "remains": ["abstract"]}
OPEN: wire.Isolation = {"network": "open", "means": [], "closed": False, "remains": ["network", "abstract"]}


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")


def test_engines_that_are_held_alike_share_a_line() -> None:
    engines = [
        {**engine("ear"), "isolation": CLOSED},
        {**engine("mind"), "isolation": LOOPBACK},
        {**engine("voice"), "isolation": CLOSED},
        engine("by address"),
    ]
    assert list(isolation(engines)) == [  # type: ignore[arg-type]  # dicts laid over a TypedDict
        "  No network: ear, voice (namespace, filter)",
        "  A loopback of its own and no other network: mind (namespace, filter)",
    ]


def test_what_is_left_open_is_told() -> None:
    engines = [{**engine("ear"), "isolation": FILTER}, {**engine("mind"), "isolation": OPEN}]
    assert list(isolation(engines)) == [  # type: ignore[arg-type]  # likewise
        "  No network, but abstract sockets of other programs: ear (filter); see docs/hardening.md",
        "  This system could not take the network away: mind; see docs/hardening.md",
    ]
    assert FakeDaemon().status()["engines"][0]["isolation"] is None
