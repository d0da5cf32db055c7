"""The resident engines as other programs use them: leased for as long as they are needed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.fakes.engines import RATE_HZ, ScriptedEngines

from ondam.errors import EngineError
from ondam.house import lending as module
from ondam.house.lending import Lending
from ondam.pipeline.ports import Lease, SpeechStart
from ondam.planner.plan import Plan
from ondam.supervisor.crew import Crew
from ondam.types import HEARING_RATE_HZ, Audio, Stage

CD = Audio(np.zeros(44_100, np.int16), 44_100)


@dataclass
class Leased(ScriptedEngines):
    """Counts who has a lease."""

    leases: int = 0
    stt_s: float = 0.0
    tts_s: float = 0.0

    def lease(self) -> Lease:
        self.leases += 1
        return Lease(self, let_go=self._returned)

    def _returned(self) -> None:
        self.leases -= 1


@dataclass(eq=False)
class Answering(Crew):
    """One whose language engine is there or not."""

    there: bool = True
    asked: list[str] = field(default_factory=list)

    def engine(self, stage: Stage) -> Any:
        return SimpleNamespace(address="unix:///l") if self.there else None


def lending(
    engines: ScriptedEngines | None = None, *, there: bool = True, switching: frozenset[Stage] = frozenset()
) -> tuple[Lending, Crew]:
    crew = Answering(0, Plan(()), {}, switching, there=there)
    return Lending(engines or Leased(), cast(Any, SimpleNamespace(crew=crew))), crew


async def test_a_recording_of_any_rate_becomes_words() -> None:
    engines = Leased(heard="Hello.")
    lent, _ = lending(engines)
    assert (await lent.transcribe(CD, "en", ("Ondam",))).text == "Hello."
    [audio] = engines.heard_audio
    assert (audio.rate_hz, len(audio.samples)) == (HEARING_RATE_HZ, 16_000)
    assert engines.leases == 0


async def test_a_recognizer_that_fails_is_given_back() -> None:
    engines = Leased(breaks={"stt"})
    with pytest.raises(EngineError):
        await lending(engines)[0].transcribe(CD, "en", ())
    assert engines.leases == 0


async def test_text_becomes_one_stream_of_sound_at_one_rate() -> None:
    engines = Leased()
    pieces = [piece async for piece in lending(engines)[0].synthesize("It is three. Good bye.", "en")]
    assert engines.said == ["It is three.", "Good bye."]
    assert [piece.rate_hz for piece in pieces if isinstance(piece, SpeechStart)] == [RATE_HZ]
    assert isinstance(pieces[0], SpeechStart)
    assert engines.leases == 0


async def test_who_listens_no_more_stops_the_voice() -> None:
    engines = Leased()
    speech = lending(engines)[0].synthesize("It is three. Good bye.", "en")
    await anext(speech)
    assert (engines.running, engines.leases) == (1, 1)
    await speech.aclose()
    assert (engines.running, engines.leases, engines.said) == (0, 0, ["It is three."])


async def test_an_answer_keeps_its_engine_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer() -> AsyncGenerator[bytes, None]:
        yield b"one"
        yield b"two"

    async def forward(url: str, body: Mapping[str, object]) -> tuple[int, str, AsyncGenerator[bytes, None]]:
        assert (url, body) == ("unix:///l", {"messages": []})
        return 200, "application/json", answer()

    monkeypatch.setattr(module, "forward", forward)
    lent, crew = lending()
    told = await lent.chat({"messages": []})
    assert (told.status, told.headers) == (200, {"Content-Type": "application/json"})
    assert crew.users == 1  # also before anybody reads
    assert [chunk async for chunk in told.chunks] == [b"one", b"two"]
    assert crew.users == 0
    unread = await lent.chat({"messages": []})
    await unread.chunks.aclose()
    assert crew.users == 0


async def test_an_engine_that_is_not_reached_is_held_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forward(url: str, body: Mapping[str, object]) -> Any:
        raise EngineError("engine_unreachable", address=url, reason="gone")

    monkeypatch.setattr(module, "forward", forward)
    lent, crew = lending()
    with pytest.raises(EngineError):
        await lent.chat({})
    assert crew.users == 0


@pytest.mark.parametrize(
    ("switching", "code"), [(frozenset[Stage](), "llm_down"), (frozenset[Stage]({"llm"}), "engine_switching")]
)
async def test_without_an_engine_it_is_told_whether_to_wait(switching: frozenset[Stage], code: str) -> None:
    with pytest.raises(EngineError) as raised:
        await lending(there=False, switching=switching)[0].chat({})
    assert raised.value.code == code
