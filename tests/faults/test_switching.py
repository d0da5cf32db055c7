"""Another model while the daemon runs: what serves, what is stopped when, and what follows where it fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fakes.engine.rig import Rig, alive, planned, until

from ondam.config import Config, load
from ondam.errors import ConfigError, ControlError, EngineError
from ondam.house.switching import Switch, Switching, implied
from ondam.places import Places
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan, PlannedEngine
from ondam.supervisor.crew import Crew
from ondam.supervisor.family import ENGINE, INSTANCE, marked

ROOMY, NARROW = 64.0, 5.0
"""GiB of the machine. Each language model here takes 3, and 0.5 stay free."""


@dataclass
class Floor:
    """Remembers what it was told; ``warming`` is done while the new engine is up and serves nobody."""

    states: list[str] = field(default_factory=list)
    served: list[str | None] = field(default_factory=list)
    warming: Callable[[Crew], None] = lambda crew: None
    fleet: Any = None

    async def warm_up(self, crew: Crew, stages: frozenset[str]) -> None:
        self.warming(crew)
        await asyncio.sleep(0.3)

    def switched(self, config: Config, stages: frozenset[str]) -> None:
        engine = self.fleet.engine("llm")
        self.served.append(None if engine is None else engine.model)

    def tell(self, switch: Switch) -> None:
        self.states.append(switch.state)


def llm(name: str, **options: Any) -> PlannedEngine:
    return replace(planned("llm", memory_gib=3.0, **options), model=name)


class Stage:
    """A daemon's fleet with ``old``, and what other models would be planned as."""

    def __init__(self, home: Places, gib: float, models: dict[str, PlannedEngine], **changed: Any) -> None:
        self.home = home
        self.models = {"old": llm("old"), **models}
        self.rig = Rig(home, planned("stt"), self.models["old"], planned("tts"), **changed)
        self.floor = Floor(fleet=self.rig.fleet)
        facts = Facts(2, 2, "a cpu", frozenset(), round(gib * 1024), "linux", "x86_64")

        def plan(config: Config) -> tuple[Plan, Facts]:
            launched = (planned("stt"), self.models[config.llm.model], planned("tts"))
            return Plan(launched), facts

        config = load(None, {"language": "en", "llm": {"model": "old"}})
        self.switching = Switching(
            self.rig.fleet, config, home.config_file, plan, self.floor, available_gib=lambda: gib
        )
        self.together = 0
        """The most language models that ran at once."""

    async def watch(self) -> None:
        while True:
            self.together = max(self.together, len(await asyncio.to_thread(self.leaders)))
            await asyncio.sleep(0.01)

    def leaders(self) -> list[psutil.Process]:
        """Processes of language engines that run now."""
        found = []
        for process, environ in marked({INSTANCE: self.home.runtime.name}):
            with suppress(psutil.Error):
                if environ.get(ENGINE, "").startswith("llm") and "serve.py" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    @property
    def serves(self) -> tuple[str | None, int | None]:
        engine = self.rig.fleet.engine("llm")
        return (None, None) if engine is None else (engine.model, engine.pid)

    def others(self) -> list[int | None]:
        return [status.pid for status in self.rig.fleet.status() if status.stage != "llm"]

    async def to(self, model: str, *, kept: bool = False) -> Switch:
        return await self.switching.switch({"llm.model": model}, kept=kept)


@asynccontextmanager
async def stage(
    home: Places, gib: float = ROOMY, changed: dict[str, Any] | None = None, **models: PlannedEngine
) -> AsyncIterator[Stage]:
    made = Stage(home, gib, models, **(changed or {}))
    async with made.rig:
        await made.rig.start()
        watching = asyncio.create_task(made.watch())
        await until(lambda: made.together)
        try:
            yield made
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await made.switching.close()
    assert made.leaders() == []
    assert [p for p in home.runtime.iterdir() if p.suffix in {".sock", ".pid"}] == []


async def test_where_both_fit_the_new_one_takes_over_without_a_gap(home: Places) -> None:
    async with stage(home, new=llm("new")) as it:
        (_, old), others = it.serves, it.others()
        gaps: list[object] = []

        async def asking() -> None:
            while True:
                gaps.append(it.serves[0])
                await asyncio.sleep(0.005)

        asks = asyncio.create_task(asking())
        done = await it.to("new")
        asks.cancel()
        assert (done.state, done.beside, done.stages, done.kept) == ("done", True, ("llm",), False)
        assert it.floor.states == ["planning", "planning", "planning", "loading", "warming", "waiting", "stopping", "done"]  # fmt: skip  # noqa: E501
        model, new = it.serves
        assert (model, it.together) == ("new", 2) and new != old
        assert set(gaps) == {"old", "new"}, "somebody served at every moment"
        assert it.others() == others, "nobody else was touched"
        assert it.leaders() and len(it.leaders()) == 1
        # It is as cold as after any start: what was measured of the other is none of it.
        engine = it.rig.fleet.engine("llm")
        assert engine is not None and (engine.answers, engine.restarts, engine.loads) == (0, 0, 0)


async def test_where_they_do_not_fit_the_old_one_is_gone_before_the_new_one_starts(home: Places) -> None:
    async with stage(home, NARROW, new=llm("new")) as it:
        done = await it.to("new")
        assert (done.state, done.beside, it.together) == ("done", False, 1)
        assert it.serves[0] == "new"
        assert it.floor.served == [None, "new"], "in between there was nobody"
        (why,) = (phrase.in_language("en") for phrase in done.short)
        # 2 × 3.0 GiB beside each other and a little for the others, of 5.0 less the half that stays free.
        assert re.search(r"need 6\.[01]\d GiB.*= 4\.50 GiB; 1\.[56]\d GiB are missing", why), why


async def test_what_fits_the_plan_and_not_what_is_free_now_is_not_started_beside(home: Places) -> None:
    async with stage(home, ROOMY, new=llm("new")) as it:
        it.switching.available_gib = lambda: 2.0  # somebody else has the rest
        done = await it.to("new")
        assert (done.beside, it.together, it.serves[0]) == (False, 1, "new")


FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "crashes": ({"crash": 3}, "engine_exited"),
    "never ready": ({"mute": True, "no_report": True}, "engine_slow"),
    "refuses": ({"refuse": True}, "engine_no_answer"),
    "differs": ({"policy": "require", "report": {"device": "cuda:0"}}, "engine_refused_by_plan"),
    "ends in its warm-up": ({"exit_after": 1, "exit_status": 7}, "engine_exited"),
    "no such file": ({"model": Path("/nowhere/weights.gguf")}, "engine_model_missing"),
}


@pytest.mark.parametrize("gib", [ROOMY, NARROW], ids=["beside", "in turn"])
@pytest.mark.parametrize("how", FAILURES)
async def test_when_the_new_one_fails_the_old_one_serves(home: Places, how: str, gib: float) -> None:
    options, code = FAILURES[how]
    async with stage(home, gib, {"ready_within_s": 1.5}, new=llm("new", **options)) as it:
        before = it.serves
        with pytest.raises(EngineError) as caught:
            await it.to("new", kept=True)
        assert caught.value.code == "switch_failed"
        reason = caught.value.facts["reason"]
        assert getattr(reason, "code", None) == code
        last = it.switching.last
        assert last is not None and last.state == "failed" and last.fault is not None
        assert last.fault.code == "switch_failed"
        assert it.serves[0] == "old" and it.rig.fleet.crew.switching == frozenset()
        # Beside, and where it was known beforehand, nobody noticed anything.
        undisturbed = gib == ROOMY or how == "no such file"
        assert (it.serves == before) is undisturbed
        together = 2 if gib == ROOMY and how != "no such file" else 1
        # On a slow machine what died in its warm-up is there once more, beside what is left of its first.
        assert it.together in {together, together + (how == "ends in its warm-up")}
        assert len(it.leaders()) == 1
        assert it.switching.config.llm.model == "old"
        assert not home.config_file.exists(), "what failed is not kept"
        # And it can be tried again.
        it.models["new"] = llm("new")
        assert (await it.to("new")).state == "done"
        assert it.serves[0] == "new"


async def test_wrong_weights_under_require_are_refused_and_the_reason_is_told(
    home: Places, tmp_path: Path
) -> None:
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(b"GGUF")
    new = llm("new", policy="require", model=weights, sha256="1" * 64)
    async with stage(home, new=new) as it:
        before = it.serves
        with pytest.raises(EngineError) as caught:
            await it.to("new")
        assert getattr(caught.value.facts["reason"], "code", None) == "engine_refused_by_plan"
        assert "1111" in caught.value.message("en").text
        assert caught.value.exit_code == 6
        assert it.serves == before


@pytest.mark.parametrize("gib", [ROOMY, NARROW], ids=["beside", "in turn"])
async def test_a_turn_in_flight_keeps_its_engine_until_it_is_over(home: Places, gib: float) -> None:
    async with stage(home, gib, new=llm("new")) as it:
        crew, (_, old) = it.rig.fleet.crew, it.serves
        crew.hold()
        switching = asyncio.create_task(it.to("new"))
        await until(lambda: "waiting" in it.floor.states)
        await asyncio.sleep(0.3)
        assert not switching.done() and old is not None and alive(psutil.Process(old))
        pinned = crew.engine("llm")
        assert pinned is not None and (pinned.model, pinned.pid) == ("old", old)
        # Whoever begins now has the new one where it is there already, and else is told to wait a moment.
        assert it.serves[0] == ("new" if gib == ROOMY else None)
        assert it.rig.fleet.crew.switching == (frozenset() if gib == ROOMY else {"llm"})
        assert it.together == (2 if gib == ROOMY else 1)
        crew.let_go()
        assert (await switching).state == "done"
        assert it.serves[0] == "new" and not psutil.pid_exists(old)


async def test_a_turn_that_never_ends_keeps_its_engine_where_both_do_not_fit(home: Places) -> None:
    async with stage(home, NARROW, new=llm("new")) as it:
        it.switching.longest_turn_s = 0.1
        before = it.serves
        it.rig.fleet.crew.hold()
        with pytest.raises(EngineError) as caught:
            await it.to("new")
        assert getattr(caught.value.facts["reason"], "code", None) == "switch_turn_goes_on"
        assert it.serves == before


async def test_a_second_change_is_refused_while_one_is_under_way(home: Places, tmp_path: Path) -> None:
    loads = tmp_path / "load"
    async with stage(home, new=llm("new", load_until=str(loads)), third=llm("third")) as it:
        first = asyncio.create_task(it.to("new"))
        await until(lambda: "loading" in it.floor.states)
        with pytest.raises(ControlError) as caught:
            await it.to("third")
        assert (caught.value.code, caught.value.facts["wanted"]) == ("switch_under_way", "llm.model=new")
        assert caught.value.exit_code == 4
        loads.touch()
        assert (await first).state == "done"
        assert (await it.to("third")).state == "done"
        assert it.serves[0] == "third"


async def test_it_goes_on_when_whoever_asked_leaves(home: Places, tmp_path: Path) -> None:
    loads = tmp_path / "load"
    async with stage(home, new=llm("new", load_until=str(loads))) as it:
        asking = asyncio.create_task(it.to("new"))
        await until(lambda: "loading" in it.floor.states)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        loads.touch()
        await until(lambda: it.floor.states[-1] == "done")
        assert it.serves[0] == "new"


@pytest.mark.parametrize("gib", [ROOMY, NARROW], ids=["beside", "in turn"])
@pytest.mark.parametrize("when", ["loading", "warming", "waiting"])
async def test_a_daemon_that_ends_meanwhile_leaves_nothing_behind(
    home: Places, tmp_path: Path, gib: float, when: str
) -> None:
    options = {"load_until": str(tmp_path / "never")} if when == "loading" else {}
    async with stage(home, gib, new=llm("new", grandchild=True, **options)) as it:
        if when == "waiting":
            it.rig.fleet.crew.hold()
        asking = asyncio.create_task(it.to("new"))
        await until(lambda: it.floor.states[-1:] == [when])
        await asyncio.sleep(0.2)
        await it.switching.close()
        await it.rig.fleet.stop()
        assert list(marked({INSTANCE: home.runtime.name})) == []
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_there_and_back_again(home: Places) -> None:
    async with stage(home, new=llm("new")) as it:
        numbers = [it.rig.fleet.crew.number]
        for model in ("new", "old", "new"):
            assert (await it.to(model)).state == "done"
            assert it.serves[0] == model and len(it.leaders()) == 1
            numbers.append(it.rig.fleet.crew.number)
        assert numbers == sorted(set(numbers)), "each has a number, and so conditions, of its own"


async def test_what_runs_already_is_no_change(home: Places) -> None:
    async with stage(home) as it:
        before = it.serves
        done = await it.to("old")
        assert (done.state, done.stages, it.serves) == ("done", (), before)


async def test_a_voice_of_another_engine_takes_over_and_the_old_one_is_told_to_be_gone(home: Places) -> None:
    async with stage(home) as it:
        other = replace(planned("tts", "other_voice"), model="other")
        # The folder of an engine that was found when the daemon started.
        it.rig.fleet._engines = {**it.rig.fleet._engines, "other_voice": _folder("other_voice")}
        it.switching.plan = lambda config: (
            Plan((planned("stt"), llm("old"), other)),
            Facts(2, 2, "a cpu", frozenset(), 65536, "linux", "x86_64"),
        )
        done = await it.switching.switch({"tts.engine": "other_voice"}, kept=False)
        assert done.stages == ("tts",)
        voice = it.rig.fleet.engine("tts")
        assert voice is not None and voice.name == "other_voice"
        told = [(c.status.name, c.status.state) for c in it.rig.changes]
        assert told.index(("other_voice", "ready")) < told.index(("tts", "stopped"))


def _folder(name: str) -> Any:
    from tests.fakes.engine.rig import engine_folder

    return engine_folder("tts", name)


async def test_what_is_kept_is_in_the_users_file_beside_all_their_words(home: Places) -> None:
    home.config.mkdir(parents=True)
    home.config_file.write_text('# mine\nlanguage = "en"  # so it is\n\n[llm]\nmodel = "old" # the first\n')
    async with stage(home, new=llm("new")) as it:
        done = await it.to("new", kept=True)
        assert done.kept
        written = home.config_file.read_text()
        assert written == '# mine\nlanguage = "en"  # so it is\n\n[llm]\nmodel = "new" # the first\n'


async def test_where_it_cannot_be_kept_nothing_is_changed(home: Places) -> None:
    home.config.mkdir(parents=True)
    home.config_file.write_text("[llm\n")
    async with stage(home, new=llm("new")) as it:
        before = it.serves
        with pytest.raises(ConfigError) as caught:
            await it.to("new", kept=True)
        assert caught.value.code == "switch_not_kept"
        assert (it.serves, home.config_file.read_text()) == (before, "[llm\n")
        assert it.floor.states == ["planning", "failed"]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"llm.temperature": "0"}, "switch_unknown_key"),
        ({"audio.speaker": "none"}, "switch_unknown_key"),
    ],
)
async def test_only_who_does_a_stage_can_be_changed(home: Places, wanted: dict[str, str], code: str) -> None:
    async with stage(home) as it:
        with pytest.raises(ConfigError) as caught:
            await it.switching.switch(wanted, kept=False)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("set_before", "wanted", "whole"),
    [
        # An engine brings a model of its own.
        ("auto", {"tts.engine": "plain"}, {"tts.model": "auto", "tts.engine": "plain"}),
        # A model brings an engine that can load it, where the one that was set cannot.
        ("plain", {"tts.model": "joe"}, {"tts.engine": "auto", "tts.model": "joe"}),
        ("singer", {"tts.model": "joe"}, {"tts.model": "joe"}),
        ("auto", {"tts.model": "joe"}, {"tts.model": "joe"}),
        # Of a path nobody knows; of both, the user does.
        ("plain", {"tts.model": "/a.onnx"}, {"tts.model": "/a.onnx"}),
        (
            "plain",
            {"tts.model": "joe", "tts.engine": "plain"},
            {"tts.model": "joe", "tts.engine": "plain"},
        ),
    ],
)
def test_what_is_named_alone_brings_the_other(
    set_before: str, wanted: dict[str, str], whole: dict[str, str]
) -> None:
    config = load(None, {"tts": {"engine": set_before}})

    def able(stage: str, model: str) -> list[str]:
        return ["singer"] if (stage, model) == ("tts", "joe") else []

    assert implied(config, wanted, able) == whole


async def test_what_fits_nowhere_is_refused_with_its_sum(home: Places) -> None:
    async with stage(home, NARROW, new=replace(llm("new"), memory_gib=7.0)) as it:
        before = it.serves
        with pytest.raises(ConfigError) as caught:
            await it.to("new")
        assert caught.value.code == "switch_does_not_fit"
        told = caught.value.message("en").text
        assert re.search(r"need 7\.[01]\d GiB.*= 4\.50 GiB; 2\.[56]\d GiB are missing", told), told
        assert it.serves == before and "loading" not in it.floor.states
