"""What is made ahead of the first question, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.fakes.engines import ScriptedEngines
from tests.fakes.virtual_time import virtual_time

from ondam.config import load
from ondam.house.preparing import Preparing
from ondam.pipeline.phrases import PREPARED, Phrases
from ondam.supervisor.status import EngineStatus

CONFIG = load(None, {"language": "en"})
LLM = EngineStatus("llama", "llm", "ready", "unix:///l", pid=1)
TTS = EngineStatus("piper", "tts", "ready", "unix:///t", pid=2)


def made() -> tuple[Preparing, ScriptedEngines, Phrases]:
    engines = ScriptedEngines()
    phrases = Phrases(engines)
    return Preparing(CONFIG, engines, phrases), engines, phrases


@virtual_time
async def test_a_language_engine_computes_what_stands_before_every_question() -> None:
    preparing, engines, phrases = made()
    preparing.ready(LLM)
    await asyncio.sleep(10)
    [asked] = engines.computed_ahead
    assert [message["content"] for message in asked] == [CONFIG.llm.system_prompt_en, ""]
    assert (engines.asked, len(phrases)) == ([], 0)


@virtual_time
async def test_a_voice_says_the_phrases() -> None:
    preparing, engines, phrases = made()
    preparing.ready(TTS)
    await asyncio.sleep(60)
    assert len(phrases) == len(PREPARED)
    assert engines.computed_ahead == []


@virtual_time
async def test_each_process_is_prepared_once() -> None:
    preparing, engines, _ = made()
    for _ in range(3):  # it is told with every change of its status
        preparing.ready(LLM)
    preparing.ready(replace(LLM, pid=7))  # it was launched again
    await asyncio.sleep(10)
    assert len(engines.computed_ahead) == 2


@virtual_time
async def test_what_somebody_else_prepares_is_left_to_them() -> None:
    preparing, engines, _ = made()
    preparing.is_prepared(LLM)
    preparing.ready(LLM)
    await asyncio.sleep(10)
    assert engines.computed_ahead == []


@virtual_time
async def test_another_language_is_prepared_in_its_own_words() -> None:
    preparing, engines, phrases = made()
    preparing.configure(load(None, {"language": "ko"}))
    preparing.compute_prompt()
    preparing.make_phrases()
    await asyncio.sleep(60)
    assert engines.computed_ahead[0][0]["content"] == CONFIG.llm.system_prompt_ko
    assert {language for _, language, _ in phrases._kept} == {"ko"}


@virtual_time
async def test_another_voice_says_them_anew() -> None:
    preparing, engines, _ = made()
    preparing.make_phrases()
    await asyncio.sleep(60)
    said = list(engines.said)
    preparing.make_phrases()  # there is nothing that it lacks
    await asyncio.sleep(60)
    assert engines.said == said
    preparing.another_voice()
    await asyncio.sleep(60)
    assert engines.said == said * 2


@virtual_time
async def test_once_closed_nothing_goes_on() -> None:
    preparing, engines, _ = made()
    preparing.ready(LLM)
    preparing.ready(TTS)
    await asyncio.sleep(0)
    await preparing.close()
    assert engines.running == 0
    said = len(engines.said)
    await asyncio.sleep(60)
    assert len(engines.said) == said <= 1
