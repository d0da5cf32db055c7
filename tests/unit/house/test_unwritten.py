"""What could not be written of turns, among the faults, in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.fakes.virtual_time import virtual_time

from ondam.house.faults import Faults
from ondam.house.unwritten import Unwritten


class Desk:
    """A recorder whose troubles are ours, and the board."""

    def __init__(self) -> None:
        self.recorder = cast(Any, SimpleNamespace(lost=0, trouble="", aside=None, unkept={}))
        self.faults = Faults("en", lambda event: None)
        self.unwritten = Unwritten(self.recorder, Path("/j"), self.faults)

    @property
    def codes(self) -> list[str]:
        return [shape["code"] for shape in self.faults.shapes("en")]

    @property
    def texts(self) -> list[str]:
        return [shape["text"] for shape in self.faults.shapes("en")]


@virtual_time
async def test_after_a_turn_it_is_looked_once_it_is_written_or_known_not_to_be() -> None:
    desk = Desk()
    desk.unwritten.look_soon()
    desk.recorder.lost = 2
    await asyncio.sleep(0.9)
    assert desk.codes == []
    await asyncio.sleep(0.2)
    assert desk.codes == ["journal_turns_lost"]


@virtual_time
async def test_turns_that_wait_are_a_fault_until_they_are_written_though_nobody_asks() -> None:
    desk = Desk()
    desk.recorder.trouble = "disk full"
    desk.unwritten.look()
    desk.unwritten.look()  # who asks for the status in between begins no second watch
    assert desk.codes == ["journal_turns_wait"]
    await asyncio.sleep(5.1)
    assert desk.codes == ["journal_turns_wait"]
    desk.recorder.trouble = ""
    await asyncio.sleep(4.8)
    assert desk.codes == ["journal_turns_wait"]
    await asyncio.sleep(0.2)  # 5 s after the look before
    assert desk.codes == []


@virtual_time
async def test_turns_that_are_lost_and_a_journal_begun_anew_stay_told() -> None:
    desk = Desk()
    desk.recorder.lost, desk.recorder.aside = 3, Path("/j.broken")
    desk.unwritten.look()
    desk.recorder.lost = 4
    desk.unwritten.look()
    assert desk.codes == ["journal_turns_lost", "journal_begun_anew"]
    assert "3" in desk.texts[0] and "/j.broken" in desk.texts[1]


@virtual_time
async def test_what_is_not_kept_beside_the_journal_is_told_until_it_is_kept_again() -> None:
    desk = Desk()
    desk.recorder.unkept = {"audio": (Path("/sounds"), "no room")}
    desk.unwritten.look()
    assert desk.codes == ["audio_not_kept"]
    desk.recorder.unkept = {"text": (Path("/words"), "no room")}
    desk.unwritten.look()
    assert desk.codes == ["text_not_kept"]
    desk.recorder.unkept = {}
    desk.unwritten.look()
    assert desk.codes == []
