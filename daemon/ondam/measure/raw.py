"""The raw sum: the engines asked in turn, straight over their own sockets, without the daemon's pipeline.

STT on the whole clip, then the LLM until the first clause, then TTS until its first samples. Nothing
overlaps: each engine is idle when the next is asked. Clients and clause cutter are the daemon's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.config import Config
from ondam.control import wire
from ondam.errors import EngineError
from ondam.pipeline.ports import Recognizer, Responder, SpeechStart, Synthesizer, Token, Usage
from ondam.pipeline.respond import prompt
from ondam.places import Places
from ondam.speech import Clause, ClauseStream
from ondam.tools import Tool
from ondam.types import Audio, Language, Nanoseconds, Stage

SLOTS = 4
"""Prompts that are sent side by side to displace what an engine has cached. llama_server holds two."""


@dataclass(frozen=True, slots=True)
class RawTimes:
    """What one question costs when the engines are asked in turn; milliseconds as their client sees them."""

    stt: float
    llm_first_token: float
    llm_first_clause: float
    """From the request to the clause, the first token's time included."""
    tts_first_audio: float
    transcript: str
    clause: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None

    @property
    def sum(self) -> float:
        """STT + first clause + first TTS audio."""
        return self.stt + self.llm_first_clause + self.tts_first_audio

    def as_json(self) -> dict[str, Any]:
        """As ``ondam bench --json`` prints it beside the turn with the same clip."""
        return {
            "stt": round(self.stt, 1),
            "llm_first_token": round(self.llm_first_token, 1),
            "llm_first_clause": round(self.llm_first_clause, 1),
            "tts_first_audio": round(self.tts_first_audio, 1),
            "sum": round(self.sum, 1),
            "clause": self.clause,
            "tokens": {"prompt": self.prompt_tokens, "cached": self.cached_tokens},
        }


class RawEngines:
    """The engines of a running daemon, without it."""

    def __init__(
        self,
        recognizer: Recognizer,
        responder: Responder,
        synthesizer: Synthesizer,
        *,
        config: Config,
        language: Language,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
    ) -> None:
        self.recognizer = recognizer
        self._responder = responder
        self.synthesizer = synthesizer
        self._config = config
        self._language: Language = language
        self._clock = clock

    @classmethod
    def of(cls, status: wire.Status, here: Places, config: Config, language: Language) -> RawEngines:
        """Those that ``status`` shows as ready. EngineError when a stage has none."""
        return cls(
            WyomingRecognizer(_address(_ready(status, "stt"), here, config.stt.address)),
            responder(status, here, config, config.llm.definitions()),
            WyomingSynthesizer(_address(_ready(status, "tts"), here, config.tts.address)),
            config=config,
            language=language,
        )

    async def answer(self, audio: Audio) -> RawTimes:
        """Ask ``audio`` (16 kHz). Raises EngineError."""
        begun = self._clock()
        transcript = await self.recognizer.transcribe(audio, self._language, self._config.stt.names)
        stt = self._since(begun)
        token, until_clause, clause, usage = await self._first_clause(transcript.text)
        begun = self._clock()
        stream = self.synthesizer.synthesize(clause.spoken, self._language)
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if not isinstance(piece, SpeechStart):
                    break
            spoken = self._since(begun)
        return RawTimes(
            stt,
            token,
            until_clause,
            spoken,
            transcript.text,
            clause.written,
            usage.prompt_tokens,
            usage.cached_tokens,
        )

    async def displace(self, number: int) -> None:
        """Make the language engine forget the last prompts, but for the system prompt they begin with.

        The same clips are asked again and again: a prompt served whole from a cache would measure the cache.
        """
        system = self._config.llm.system_prompt(self._language)

        async def ask(slot: int) -> None:
            asked = prompt(system, (), f"{number} {slot}")
            async with aclosing(self._responder.respond(asked, max_tokens=1)) as stream:
                async for _ in stream:
                    pass

        await asyncio.gather(*(ask(slot) for slot in range(SLOTS)))

    async def _first_clause(self, question: str) -> tuple[float, float, Clause, Usage]:
        """Time to the first token and to the first clause. Reads on to the end: then the engine is idle."""
        llm = self._config.llm
        asked = prompt(llm.system_prompt(self._language), (), question)
        clauses = ClauseStream(self._language)
        found: Clause | None = None
        token_ms = clause_ms = 0.0
        usage = Usage()
        begun = self._clock()
        async with aclosing(self._responder.respond(asked, max_tokens=llm.max_tokens)) as stream:
            async for piece in stream:
                if isinstance(piece, Token):
                    token_ms = token_ms or self._since(begun)
                    if found is None and (cut := clauses.feed(piece.text)):
                        found, clause_ms = cut[0], self._since(begun)
                else:
                    usage = piece
        if found is None and (cut := clauses.finish()):
            found, clause_ms = cut[0], self._since(begun)
        if found is None:
            raise EngineError("no_answer")
        return token_ms, clause_ms, found, usage

    def _since(self, begun: Nanoseconds) -> float:
        return (self._clock() - begun) / 1e6


def responder(status: wire.Status, here: Places, config: Config, tools: Sequence[Tool]) -> OpenAIResponder:
    """The language engine that ``status`` shows as ready, asked with ``tools``. EngineError without one."""
    llm = _ready(status, "llm")
    return OpenAIResponder(
        _address(llm, here, config.llm.url),
        config.llm.name if llm["outside"] else llm["model"] or "",
        temperature=config.llm.temperature,
        first_token_timeout_s=config.llm.first_token_timeout_s,
        tools=tools,
    )


def _ready(status: wire.Status, stage: Stage) -> wire.EngineStatus:
    able = [e for e in status["engines"] if e["stage"] == stage and e["state"] == "ready"]
    if not able:
        raise EngineError(f"{stage}_down")
    return min(able, key=lambda engine: engine["spare"])


def _address(engine: wire.EngineStatus, here: Places, outside: str) -> str:
    return outside if engine["outside"] else f"unix://{here.engine_answers(engine['name'])}"
