"""GET /api/report over a real socket: which turns can be asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control.client import Client
from ondam.errors import ControlError
from ondam.journal.reading import Selection


async def test_a_query_becomes_a_selection(client: Client, daemon: FakeDaemon) -> None:
    await client.report(since="2026-01-31T12:00+00:00", session="s", most=7)
    (asked,) = daemon.asked
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert asked == ("report", Selection(since=since, session="s", most=7), "en")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"since": "bogus"}, "since: 2h, 7d, an ISO date"),
        ({"since": "1h", "until": "2h"}, "no moment lies between since 1h and until 2h"),
        ({"most": "0"}, "most: a whole number from 1"),
    ],
)
async def test_what_no_turn_can_fit_is_a_bad_request(
    client: Client, query: dict[str, str], said: str
) -> None:
    with pytest.raises(ControlError) as told:
        await client.report(**query)
    assert told.value.code == "control_bad_request" and said in str(told.value)
