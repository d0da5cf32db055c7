"""A second copy of the weights under another name takes over while the conversation goes on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from ondam.measure.clips import clips
from tests.scenarios.house import House, engine, prepared_data

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

FIRST, SECOND = "smollm2-135m-instruct", "smollm2-second"


async def ondam(home: Path, *arguments: str) -> tuple[int, Any]:
    """Exit code, and the JSON that it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ondam",
        *arguments,
        "--json",
        env={**os.environ, "ONDAM_HOME": str(home), "ONDAM_LANGUAGE": "en"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out, err
    return process.returncode or 0, json.loads(out)


async def furnished(folder: Path) -> Path:
    """A home with the prepared engines and models, and a second language model."""
    data = folder / "data"
    (data / "models").mkdir(parents=True)
    for there in prepared_data().iterdir():
        if there.name != "models":
            (data / there.name).symlink_to(there)
    for there in (prepared_data() / "models").glob("[!.]*"):
        (data / "models" / there.name).symlink_to(there)
    (weights,) = (prepared_data() / "models" / FIRST).glob("*.gguf")
    code, told = await ondam(folder, "models", "import", str(weights), "--id", SECOND)
    assert code == 0, told
    return folder


def language_engines(house: House) -> set[int]:
    found = set()
    for process in house.family():
        with suppress(psutil.Error):
            if process.environ().get("ONDAM_ENGINE", "").startswith("llama_server"):
                found.add(os.getsid(process.pid))
    return found


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    home = await furnished(tmp_path_factory.mktemp("switching"))
    made = House(home, {"language": "en"})
    made.open()
    await made.ready()
    yield made
    assert made.close() == 0
    assert made.family() == []


@pytest.mark.asyncio(loop_scope="module")
async def test_the_conversation_goes_on_with_the_other_model(house: House) -> None:
    async with house.client() as client:
        await client.set_mode("push")
        first, _ = await client.wav_turn(clips("en")[0].wav, "en", reset_history=True)
        typed = await client.ask("Name a colour.")
        before = await client.status()
        old = engine(before, "llama_server")
        # One that is being answered while the change comes.
        turning = asyncio.create_task(client.wav_turn(clips("en")[1].wav, "en"))
        async for event in client.events():
            if event["type"] == "state" and event["state"] in {"thinking", "speaking"}:
                break
        code, done = await ondam(house.home, "switch", f"llm={SECOND}")
        assert (code, done["state"], done["beside"], done["stages"]) == (0, "done", True, ["llm"])
        meanwhile, _ = await turning
        assert meanwhile["outcome"] == "answered"
        assert meanwhile["engines"]["llama_server"]["pid"] == old["pid"], "it ended where it began"
        after = await client.status()
        new = engine(after, "llama_server")
        assert (new["state"], new["model"], new["loads"]) == ("ready", SECOND, 1)
        assert new["pid"] != old["pid"] and not psutil.pid_exists(old["pid"] or 0)
        assert (after["mode"], after["state"], after["faults"]) == ("push", "listening", before["faults"])
        last, _ = await client.wav_turn(clips("en")[0].wav, "en")
        again = await client.ask("Name another colour.")
        assert last["outcome"] == "answered" and last["engines"]["llama_server"]["pid"] == new["pid"]
        # Both earlier exchanges are in what the new model was asked.
        tokens = [turn["tokens"]["prompt"] or 0 for turn in (first, meanwhile, last)]
        assert tokens[0] < tokens[1] < tokens[2]
        assert (again["tokens"]["prompt"] or 0) > (typed["tokens"]["prompt"] or 0)
        assert again["session"] == typed["session"]
        # What was measured on the one is kept apart from the other.
        assert first["conditions"] == meanwhile["conditions"] != last["conditions"]
        assert last["population"] == "cold" and after["report"]["turns"] == 0
        groups = (await client.report())["groups"]
        assert {group["conditions"] for group in groups} >= {first["conditions"], last["conditions"]}


def kept(house: House) -> bytes | None:
    """The configuration file; another test may have had one written."""
    file = house.places.config_file
    return file.read_bytes() if file.exists() else None


@pytest.mark.asyncio(loop_scope="module")
async def test_weights_that_are_none_leave_the_model_that_serves(house: House, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(4096))
    async with house.client() as client:
        written = kept(house)
        before = engine(await client.status(), "llama_server")
        code, told = await ondam(house.home, "switch", f"llm={broken}", "--keep")
        assert (code, told["error"]["code"]) == (6, "switch_failed")
        status = await client.status()
        assert engine(status, "llama_server")["pid"] == before["pid"]
        assert status["switch"] is not None and status["switch"]["state"] == "failed"
        assert kept(house) == written, "what failed is not written down"
        turn, _ = await client.wav_turn(clips("en")[0].wav, "en")
        assert turn["outcome"] == "answered"
    code, told = await ondam(house.home, "switch", "llm=no-such-model")
    assert code == 5, told
    code, _ = await ondam(house.home, "switch", "llm.temperature=1")
    assert code == 2


@pytest.mark.asyncio(loop_scope="module")
async def test_kept_is_kept(house: House) -> None:
    code, done = await ondam(house.home, "switch", f"llm={FIRST}", "--keep")
    assert (code, done["kept"]) == (0, True)
    assert house.places.config_file.read_text("utf-8") == f'[llm]\nmodel = "{FIRST}"\n'


async def test_where_there_is_room_for_one_there_is_never_a_second(tmp_path: Path) -> None:
    home = await furnished(tmp_path)
    _, plan = await ondam(home, "plan")
    needed = sum(plan[part]["memory_gib"] for part in ("stt", "llm", "tts", "spare") if plan[part])
    reserve = plan["facts"]["ram_gib"] - needed - 0.1
    if reserve > 64:
        pytest.skip("as much as this machine has cannot be reserved")
    house = House(home, {"language": "en", "plan.memory_reserve_gib": f"{reserve:.2f}"})
    house.open()
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, len(await asyncio.to_thread(language_engines, house)))
            await asyncio.sleep(0.02)

    try:
        await house.ready()
        watching = asyncio.create_task(watch())
        async with house.client() as client:
            first, _ = await client.wav_turn(clips("en")[0].wav, "en")
            code, done = await ondam(home, "switch", f"llm={SECOND}")
            assert (code, done["state"], done["beside"]) == (0, "done", False)
            assert done["short"]
            last, _ = await client.wav_turn(clips("en")[0].wav, "en")
            assert engine(await client.status(), "llama_server")["model"] == SECOND
        watching.cancel()
        assert last["outcome"] == "answered"
        assert (last["tokens"]["prompt"] or 0) > (first["tokens"]["prompt"] or 0)
        assert most == 1
    finally:
        assert house.close() == 0
    assert house.family() == []
