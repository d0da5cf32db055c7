"""The user database may be a directory service that hangs: who is looked up in it waits, and nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.fakes.virtual_time import virtual_time
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control import directory
from ondam.control.access import EVERYTHING, NOTHING, USE, Access
from ondam.control.client import Client
from ondam.control.directory import LOOKUP_S, MOST_LOOKUPS, Directory
from ondam.errors import ControlError

DAEMON, MEMBER = 900, 1001


class Database:
    """Answers when it is let."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.asked: list[int] = []
        self.groups = {"ondam"}
        self._may_answer = threading.Event()
        if not hangs:
            self.answer()

    def answer(self) -> None:
        self._may_answer.set()

    def __call__(self, uid: int) -> set[str]:
        self.asked.append(uid)
        self._may_answer.wait()
        return self.groups


@pytest.fixture
def hanging() -> Iterator[Database]:
    database = Database(hangs=True)
    yield database
    database.answer()


def refusal(outcome: object) -> str:
    assert isinstance(outcome, ControlError)
    return outcome.code


@virtual_time
async def hangs(database: Database) -> None:
    loop, directory = asyncio.get_running_loop(), Directory(Access(DAEMON, "ondam", database))
    for request in (1, 2):
        with pytest.raises(ControlError) as caught:
            await directory.of(MEMBER)
        assert caught.value.code == "control_directory_silent"
        assert caught.value.facts == {"uid": MEMBER, "seconds": LOOKUP_S}
        assert loop.time() == request * LOOKUP_S
    assert database.asked == [MEMBER], "the second request waits for the answer that the first asked for"
    begun = loop.time()
    outcomes = await asyncio.gather(*(directory.of(uid) for uid in range(2000, 2100)), return_exceptions=True)
    assert {refusal(outcome) for outcome in outcomes} == {"control_directory_silent"}
    assert loop.time() == begun + LOOKUP_S
    assert len(database.asked) == MOST_LOOKUPS


def test_a_lookup_that_hangs_is_refused_in_time_and_never_asked_for_twice(hanging: Database) -> None:
    hangs(hanging)


async def test_what_was_found_is_kept_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database()
    asked = Directory(Access(DAEMON, "ondam", database))
    assert [await asked.of(MEMBER) for _ in range(3)] == [USE] * 3
    assert database.asked == [MEMBER]
    database.groups = {"ondam", "ondam-admin"}
    monkeypatch.setattr(directory, "KEPT_S", -1.0)
    assert await asked.of(MEMBER) == EVERYTHING


async def test_an_answer_that_comes_late_serves_the_next_request(
    hanging: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Directory(Access(DAEMON, "ondam", hanging))
    monkeypatch.setattr(directory, "LOOKUP_S", 0.01)
    with pytest.raises(ControlError):
        await asked.of(MEMBER)
    hanging.answer()
    monkeypatch.setattr(directory, "LOOKUP_S", 5.0)
    assert await asked.of(MEMBER) == USE
    assert hanging.asked == [MEMBER]


async def test_while_strangers_wait_for_the_database_the_daemon_and_its_user_do_not(
    client: Client, daemon: FakeDaemon, hanging: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers = iter(range(1000, 1000 + 2 * MOST_LOOKUPS))
    monkeypatch.setattr(directory, "LOOKUP_S", 0.01)
    monkeypatch.setattr(Access, "of", lambda self, uid: hanging(uid) and NOTHING)
    with monkeypatch.context() as others:
        others.setattr("ondam.control.server.peer_uid", lambda connection: next(callers))
        for _ in range(2 * MOST_LOOKUPS):
            with pytest.raises(ControlError) as caught:
                await client.status()
            assert caught.value.code == "control_directory_silent"
        others.setattr("ondam.control.server.peer_uid", lambda connection: 0)
        await client.status()
    await client.status()
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
    assert daemon.asked == []
