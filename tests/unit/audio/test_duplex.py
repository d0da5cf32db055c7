"""A microphone in the same room as our own voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from tests.fakes.babble import babble
from tests.fakes.room import Room, RoomMicrophone
from tests.fakes.virtual_time import virtual_time

from ondam.audio.duplex import Duplex, EchoMode, EchoSetting
from ondam.audio.echo import LAG_NS, level_db
from ondam.audio.resample import resampled
from ondam.types import HEARING_RATE_HZ, Audio, Block, Samples


def clock() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


class Listening:
    """A duplex microphone in a room, and all it gave."""

    def __init__(self, room: Room, setting: EchoSetting = "auto", duplex: Duplex | None = None) -> None:
        self.room = room
        self.modes: list[tuple[float, EchoMode]] = []
        self.duplex = duplex or Duplex(
            room.microphone, room.speaker, setting=setting, on_change=self._changed
        )
        self.blocks: list[Block] = []
        self.trusted: list[bool] = []
        self._task = asyncio.create_task(self._listen())

    def _changed(self, mode: EchoMode) -> None:
        self.modes.append((clock() / 1e9, mode))

    async def _listen(self) -> None:
        async for block in self.duplex.blocks():
            self.blocks.append(block)
            self.trusted.append(self.duplex.trusted)

    async def answer(self, seconds: float, *, seed: int = 1, pause_s: float = 1.0) -> None:
        """Say something, wait until it was heard, and a little longer."""
        sound = resampled(Audio(babble(seconds, seed=seed), HEARING_RATE_HZ), self.room.speaker.rate_hz)
        await self.room.speaker.write(sound.samples)
        await self.room.speaker.drained()
        await asyncio.sleep(pause_s)

    def heard(self, from_s: float, to_s: float) -> Samples:
        """What came in that time."""
        chosen = [b.samples for b in self.blocks if from_s * 1e9 <= b.at_ns < to_s * 1e9]
        return np.concatenate(chosen)

    async def close(self) -> None:
        await self.duplex.close()
        await self._task


def in_a_room(**room: object) -> Listening:
    setting: EchoSetting = room.pop("setting", "auto")  # type: ignore[assignment]
    return Listening(Room(clock=clock, **room), setting)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("delay_ms", "attenuation_db", "reverberant"),
    [(15, 12, True), (80, 12, False), (80, 30, True), (250, 12, True), (600, 12, True), (600, 30, False)],
)
def test_in_the_first_answer_the_echo_is_found_and_from_then_on_removed(
    delay_ms: float, attenuation_db: float, reverberant: bool
) -> None:
    @virtual_time
    async def run() -> None:
        ears = in_a_room(delay_ms=delay_ms, attenuation_db=attenuation_db, reverberant=reverberant)
        assert (ears.duplex.mode, ears.duplex.trusted) == ("learning", False)
        await ears.answer(6)
        assert [mode for _, mode in ears.modes] == ["cancelling"]
        assert ears.modes[0][0] <= 5.5
        assert ears.duplex.delay_ms == pytest.approx(delay_ms, abs=2)
        begun = clock() / 1e9
        await ears.answer(4, seed=2)
        # The noise of the room is -80 dBFS, our own voice at the microphone -32 or -50.
        assert level_db(ears.heard(begun + 0.1, begun + 4)) <= -58
        assert [mode for _, mode in ears.modes] == ["cancelling"]
        assert ears.duplex.erle_db is not None and ears.duplex.erle_db >= 15
        await ears.close()

    run()


@virtual_time
async def test_while_nothing_is_played_the_very_blocks_of_the_microphone_come() -> None:
    ears = in_a_room()
    inner: list[Block] = []
    blocks = ears.room.microphone.blocks

    async def noted() -> AsyncIterator[Block]:
        async for block in blocks():
            inner.append(block)
            yield block

    ears.room.microphone.blocks = noted  # type: ignore[method-assign, assignment]
    await asyncio.sleep(1)
    await ears.answer(5, pause_s=3.5)
    await asyncio.sleep(1)
    assert all(came is gave for came, gave in zip(ears.blocks[:100], inner[:100], strict=True))
    assert all(came is gave for came, gave in zip(ears.blocks[-90:], inner[-90:], strict=True))
    assert [came.first for came in ears.blocks] == [gave.first for gave in inner]
    assert ears.blocks[300] is not inner[300]
    await ears.close()


@virtual_time
async def test_what_went_through_the_canceller_has_the_time_at_which_it_was_said() -> None:
    ears = in_a_room(attenuation_db=60)
    await ears.answer(6, pause_s=0)
    click = np.zeros(160, np.int16)
    click[:16] = 12_000
    at_ns = ears.room.say(Audio(click, HEARING_RATE_HZ), clock() + 500_000_000)
    await asyncio.sleep(1)
    loudest = max(ears.blocks[-110:], key=lambda block: int(np.abs(block.samples.astype(int)).max()))
    seen_ns = loudest.at_ns + int(np.argmax(np.abs(loudest.samples.astype(int)))) * 62_500
    assert abs(seen_ns - at_ns) <= 2_000_000
    assert loudest.at_ns % 10_000_000 == (10_000_000 - LAG_NS) % 10_000_000
    await ears.close()


@virtual_time
async def test_with_a_headset_that_nobody_recognised_there_is_no_echo_and_the_user_is_believed() -> None:
    ears = in_a_room(attenuation_db=float("inf"))
    await ears.answer(6)
    assert [mode for _, mode in ears.modes] == ["no_echo"]
    assert ears.duplex.trusted
    assert ears.duplex.delay_ms is None
    await ears.close()


@virtual_time
async def test_a_recognised_headset_is_believed_from_the_start_until_it_is_heard() -> None:
    room = Room(clock=clock, attenuation_db=float("inf"))
    room.speaker.name = "USB Headset"
    ears = Listening(room)
    assert (ears.duplex.mode, ears.duplex.trusted) == ("no_echo", True)
    await ears.answer(6)
    assert ears.modes == []
    room.attenuation_db = 12  # it lies on the table, turned up
    await ears.answer(6)
    assert [mode for _, mode in ears.modes] == ["learning", "cancelling"]
    await ears.close()


@virtual_time
async def test_switched_off_nothing_is_removed_and_nobody_is_believed() -> None:
    ears = in_a_room(setting="off")
    await ears.answer(6)
    assert (ears.duplex.mode, ears.duplex.trusted, ears.modes) == ("half_duplex", False, [])
    assert level_db(ears.heard(1, 5)) == pytest.approx(-32, abs=2)
    await ears.close()


@virtual_time
async def test_a_voice_in_the_room_that_no_echo_explains_makes_it_half_duplex() -> None:
    ears = in_a_room(attenuation_db=float("inf"))
    ears.room.say(Audio(babble(14, dbfs=-26, seed=9), HEARING_RATE_HZ))  # a television, or an echo beyond us
    await ears.answer(14)
    assert [mode for _, mode in ears.modes] == ["half_duplex"]
    assert not ears.duplex.trusted
    await ears.answer(6)  # the television is off
    assert ears.duplex.mode == "no_echo"
    await ears.close()


@virtual_time
async def test_other_devices_are_learned_anew() -> None:
    ears = in_a_room()
    await ears.answer(6)
    ears.room.speaker.name = "another"
    ears.room.delay_ms = 250
    await ears.answer(6)
    assert [mode for _, mode in ears.modes] == ["cancelling", "learning", "cancelling"]
    assert ears.duplex.delay_ms == pytest.approx(250, abs=2)
    await ears.close()


@virtual_time
async def test_a_microphone_opened_anew_goes_on_with_what_was_learned() -> None:
    ears = in_a_room()
    await ears.answer(6)
    await ears.close()
    await asyncio.sleep(60)
    room = ears.room
    room.microphone = RoomMicrophone(room, clock, asyncio.sleep)
    again = Listening(room, duplex=ears.duplex)
    again.duplex.reopen(room.microphone)
    assert again.duplex.trusted
    begun = clock() / 1e9
    await again.answer(4, seed=2)
    assert again.duplex.trusted
    assert level_db(again.heard(begun + 0.1, begun + 4)) <= -58
    await again.close()


@virtual_time
async def test_an_echo_that_moves_is_found_again() -> None:
    ears = in_a_room()
    await ears.answer(6)
    ears.room.delay_ms = 500
    await ears.answer(10)
    assert [mode for _, mode in ears.modes] == ["cancelling", "learning", "cancelling"]
    assert ears.duplex.delay_ms == pytest.approx(500, abs=2)
    await ears.close()


@pytest.mark.parametrize("over_reports_ms", [40, 150])
def test_a_speaker_that_tells_times_that_are_too_late_is_seen_through(over_reports_ms: float) -> None:
    @virtual_time
    async def run() -> None:
        ears = in_a_room(delay_ms=200, over_reports_ms=over_reports_ms)
        await ears.answer(6)
        assert ears.duplex.mode == "cancelling"
        assert ears.duplex.delay_ms == pytest.approx(200 - over_reports_ms, abs=2)
        await ears.close()

    run()


@virtual_time
async def test_short_answers_add_up() -> None:
    ears = in_a_room(delay_ms=600, attenuation_db=20)
    for number in range(8):
        await ears.answer(1.2, seed=20 + number, pause_s=5)
    assert [mode for _, mode in ears.modes] == ["cancelling"]
    await ears.close()


@virtual_time
async def test_a_user_who_speaks_over_the_answer_is_heard_and_costs_no_trust() -> None:
    ears = in_a_room()
    await ears.answer(6)
    before = len(ears.trusted)
    begun = clock() / 1e9
    said = ears.room.say(Audio(babble(3, dbfs=-26, seed=30), HEARING_RATE_HZ), clock() + 1_000_000_000)
    await ears.answer(5, seed=3)
    assert all(ears.trusted[before:])
    assert level_db(ears.heard(said / 1e9, said / 1e9 + 3)) >= -34
    assert level_db(ears.heard(begun + 0.1, said / 1e9 - 0.05)) <= -58
    await ears.close()


@virtual_time
async def test_the_rest_of_the_echo_that_must_be_expected_is_told_while_our_own_voice_sounds() -> None:
    ears = in_a_room()
    assert ears.duplex.residual_db is None
    await ears.answer(6, pause_s=0)
    assert ears.duplex.residual_db is not None
    assert -85 <= ears.duplex.residual_db <= -45
    await asyncio.sleep(4)
    assert ears.duplex.residual_db is None
    await ears.close()


@virtual_time
async def test_an_answer_cut_short_is_no_riddle() -> None:
    ears = in_a_room(delay_ms=250)
    await ears.answer(6)
    writing = asyncio.create_task(ears.answer(5, seed=4))
    await asyncio.sleep(1.5)
    ears.room.speaker.level(0.15)
    await asyncio.sleep(0.3)
    ears.room.speaker.flush()
    cut = clock() / 1e9
    await writing
    assert level_db(ears.heard(cut - 1, cut + 0.9)) <= -58
    assert [mode for _, mode in ears.modes] == ["cancelling"]
    await ears.close()


def test_a_listener_that_stops_lets_go_of_the_microphone() -> None:
    closed: list[bool] = []

    class Microphone:
        name = "m"

        async def blocks(self) -> AsyncIterator[Block]:
            try:
                while True:
                    yield Block(np.zeros(160, np.int16), 0, 0)
            finally:
                closed.append(True)

        async def close(self) -> None:
            pass

    async def run() -> None:
        stream = Duplex(Microphone(), Room(clock=lambda: 0).speaker).blocks()
        await anext(stream)
        await stream.aclose()

    with_loop: Callable[..., None] = asyncio.run
    with_loop(run())
    assert closed == [True]
