"""One real question to a server that is not ours, asked as a turn asks it: by the same client, the same way.

Asked otherwise, some that no turn can use would answer, and some that a turn can use would refuse.
"""

from __future__ import annotations

from contextlib import aclosing

import numpy as np

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.errors import EngineError
from ondam.pipeline.ports import Message, Token
from ondam.planner.plan import OutsideEngine
from ondam.supervisor.readiness import ANSWER_TOKENS, OPENER, QUESTION, SENTENCE, tone
from ondam.supervisor.status import Fault
from ondam.types import HEARING_RATE_HZ, Audio

SYSTEM = "Answer in a few words."
"""Some templates know no system prompt, and every turn has one."""

ENOUGH = 64
"""Characters of an answer whose server does not count tokens; the rest is not waited for."""


async def first_answer(planned: OutsideEngine) -> tuple[Fault, ...]:
    """What is wrong with an answer that came. Raises EngineError where a turn would get none.

    A recognizer may well refuse a tone without words: that is told and stands in no turn's way.
    """
    match planned.stage:
        case "llm":
            return await _answers(planned)
        case "tts":
            await _speaks(planned)
            return ()
        case "stt":
            try:
                await _hears(planned)
            except EngineError as error:
                return (Fault(error.code, error.facts),)
            return ()


async def _answers(planned: OutsideEngine) -> tuple[Fault, ...]:
    address = planned.address
    responder = OpenAIResponder(
        address,
        planned.model,
        temperature=planned.temperature,
        first_token_timeout_s=planned.patience_s,
        idle_timeout_s=planned.patience_s,
    )
    messages: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION[planned.language]},
    ]
    said, reasoned = "", False
    async with aclosing(responder.respond(messages, max_tokens=ANSWER_TOKENS)) as told:
        async for got in told:
            if isinstance(got, Token):
                said += got.text
                if len(said) > ENOUGH:
                    break
            else:
                reasoned = got.reasoning_seen
    if reasoned or OPENER in said:
        return (Fault("engine_thinks", {"address": address}),)
    if not said.strip():
        raise EngineError("engine_no_answer", address=address, reason="no text")
    return ()


async def _speaks(planned: OutsideEngine) -> None:
    voice = WyomingSynthesizer(
        planned.address, first_timeout_s=planned.patience_s, idle_timeout_s=planned.patience_s
    )
    async with aclosing(voice.synthesize(SENTENCE[planned.language], planned.language)) as sounded:
        async for piece in sounded:
            if isinstance(piece, np.ndarray) and len(piece):
                return
    raise EngineError("engine_no_answer", address=planned.address, reason="no sound")


async def _hears(planned: OutsideEngine) -> None:
    recognizer = WyomingRecognizer(planned.address, timeout_s=planned.patience_s)
    await recognizer.transcribe(Audio(np.array(tone(), np.int16), HEARING_RATE_HZ), planned.language)
