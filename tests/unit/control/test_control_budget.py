"""GET /api/budget over a real socket: what a page can ask."""

from __future__ import annotations

import pytest
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control.client import Client
from ondam.errors import ControlError
from ondam.measure.budget_answer import Wanted


async def test_a_query_becomes_a_budget(client: Client, daemon: FakeDaemon) -> None:
    query = [("preset", "laptop"), ("against", "h100"), ("set", "stt=50"), ("set", "ipc=5"), ("drafts", "1")]
    told = await client.budget([*query, ("target", "700")])
    (asked,) = daemon.asked
    assert asked == (
        "budget",
        Wanted("laptop", "h100", (("stt", 50.0), ("ipc", 5.0)), 700.0, drafts=True),
        "en",
    )
    # max(571, 83 + 5 + 50 + 153 + 321 + 118) + 30
    assert (told["total_ms"], told["target_ms"]) == (760.0, 700.0)
    assert told["against"] is not None and told["against"]["preset"] == "h100"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ([("set", "sst=1")], 'did you mean "stt"'),
        ([("preset", "none")], "no preset 'none'"),
        ([("drafts", "yes")], "drafts: 0 or 1 is wanted"),
        ([("target", "nan")], "not 'nan'"),
        ([("preset", "this-machine")], "ondam up"),
    ],
)
async def test_what_cannot_be_is_a_bad_request(
    client: Client, query: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(ControlError) as told:
        await client.budget(query)
    assert told.value.code == "control_bad_request" and said in str(told.value)
