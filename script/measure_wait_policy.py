#!/usr/bin/env python3
"""What OMP_WAIT_POLICY does to engines that share a machine: first clause and first sound, policies in turn.

    .venv/bin/python script/measure_wait_policy.py [--rounds N]

Each policy gets a daemon of its own, so it is set in every engine but recognition (which always has it
passive). A request to the language model and one to the voice are measured inside the engines, while
recognition works beside them as it does when a draft overlaps.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from contextlib import aclosing

from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.clients.openai_llm import OpenAIResponder
from ondam.clients.wyoming_stt import WyomingRecognizer
from ondam.clients.wyoming_tts import WyomingSynthesizer
from ondam.control.client import Client
from ondam.control.sound import decode
from ondam.measure.clips import clips
from ondam.pipeline.ports import SpeechStart, Token
from ondam.places import places

POLICIES = ("as the runtime has it", "PASSIVE", "ACTIVE")
TOKENS = 12
"""About a first clause."""


async def one_policy(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds to the twelfth token, and to the first sound."""
    here = places()
    clause: list[float] = []
    sound: list[float] = []
    async with own_daemon(here, {"language": "en"}, alone=True), Client(here.control_socket) as client:
        await until_ready(client)
        model = OpenAIResponder(f"unix://{here.engine_socket('llama_server')}")
        voice = WyomingSynthesizer(f"unix://{here.engine_socket('piper')}")
        ears = WyomingRecognizer(f"unix://{here.engine_socket('faster_whisper')}")
        for number in range(rounds + 2):
            clip = clips("en")[number % len(clips("en"))]
            hearing = asyncio.create_task(ears.transcribe(decode(clip.wav, 10**7), "en"))
            asked = [{"role": "user", "content": f"{clip.words} ({number})"}]
            async with aclosing(model.respond(asked, max_tokens=TOKENS)) as stream:  # type: ignore[arg-type]
                times = [p.engine_ms async for p in stream if isinstance(p, Token) and p.engine_ms]
            async with aclosing(voice.synthesize(clip.words, "en")) as pieces:
                async for piece in pieces:
                    if isinstance(piece, SpeechStart) and piece.engine_ms and number >= 2:
                        sound.append(piece.engine_ms)
            await hearing
            if times and number >= 2:
                clause.append(times[-1])
    return clause, sound


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=18)
    given = parser.parse_args()
    for policy in (*POLICIES, POLICIES[0]):
        if policy.isupper():
            os.environ["OMP_WAIT_POLICY"] = policy
        else:
            os.environ.pop("OMP_WAIT_POLICY", None)
        clause, sound = asyncio.run(one_policy(given.rounds))
        print(
            f"{policy:22} first clause median {statistics.median(clause):6.0f} ms ({min(clause):.0f} to "
            f"{max(clause):.0f}), first sound {statistics.median(sound):6.0f} ms ({min(sound):.0f} to "
            f"{max(sound):.0f}), load {os.getloadavg()[0]:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
