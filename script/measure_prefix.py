#!/usr/bin/env python3
"""What a long system prompt and a conversation cost from the second turn on: first tokens, cached tokens.

    .venv/bin/python script/measure_prefix.py [--turns N] [--json]

Whole turns through a daemon of its own: the shipped questions as WAVs in real time, drafts on. *Alone*: each
turn in a conversation of its own. *One conversation*: all in one, with what was heard of the answers.
*Typed*: one conversation, without speech and without drafts. *Cold*: the same prompt with another first word,
asked of the engine directly, so that nothing of it is cached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from contextlib import aclosing
from typing import Any

from ondam.cli.own_daemon import own_daemon, until_ready
from ondam.clients.openai_llm import OpenAIResponder
from ondam.config import load
from ondam.control.client import Client
from ondam.deploy.prepare import prepare
from ondam.measure.clips import clips
from ondam.measure.distribution import distribution
from ondam.models.progress import Silent
from ondam.pipeline.ports import Usage
from ondam.pipeline.respond import prompt
from ondam.places import places

SYSTEM = """You are Ondam, the voice assistant of a small guest house with nine rooms and a garden.
Answer in one or two short sentences that sound natural aloud, and never in lists.
Breakfast is served from seven to ten in the room beside the kitchen, and on Sundays until eleven.
Guests may arrive from three in the afternoon, and leave before eleven in the morning.
Whoever arrives after ten at night finds the key in the small box beside the green door.
The front door is locked at eleven, and the code of the day opens it from outside.
The garden may be used until nine in the evening; after that the neighbours would like to sleep.
Bicycles stand in the shed behind the house, and the pump hangs on the wall beside them.
The train to the city leaves at ten past every hour, and the last one comes back at midnight.
The bus to the beach stops across the street, and takes about twenty minutes when the roads are free.
The pharmacy is on the corner of the market square, and opens at nine except on Sundays.
The nearest doctor is in the white building beside the school, and speaks three languages.
Towels are changed every second day, or whenever a guest leaves them on the floor.
The heating of a room is set with the round knob beside its door, and never by opening the window.
Wet clothes may be hung in the cellar, where a machine dries them within an hour.
Children under six sleep in the room of their parents without being charged.
Dogs are welcome in the three rooms on the ground floor, and cats are welcome everywhere.
Nobody smokes in the house, and the ashtray in the garden is emptied every evening.
The kitchen may be used by everyone who washes up, and the best knife never leaves it.
Tea and coffee are free at any hour, and the cake on the table is there to be eaten.
The piano may be played until eight in the evening, softly after dinner.
Lost things are kept for a year in the drawer under the telephone.
When the light fails, the switch is in the grey box at the end of the hall on the first floor.
When it rains for days, the games are in the cupboard under the stairs, and some of them are complete.
Prices are on the card in each room, and the host alone may change them.
On the first evening of every month the neighbours play music in the garden, and guests are invited.
A taxi is called from the telephone beside the door, and comes within a quarter of an hour.
If you do not know something, say so, and say that the host will know.
Never promise anything on behalf of the host, and never repeat what another guest has said.
If somebody is hurt, tell them to call for help at once, and say the number slowly.
Be patient with those who speak slowly, and brief with those who are in a hurry.""".replace("\n", " ")

BUDGET_MS = 130.0
COLD = 5
QUIET_S = 0.3
"""Between two turns of a conversation, for what is computed ahead."""


def row(turn: dict[str, Any]) -> dict[str, Any]:
    marks = turn["marks_ms"]
    begun, first = marks.get("llm_sent"), marks.get("llm_first_token")
    return {
        "prompt": turn["tokens"]["prompt"],
        "cached": turn["tokens"]["cached"],
        "engine_ms": turn["engine_ms"]["llm_first_token"],
        "daemon_ms": None if begun is None or first is None else round(first - begun, 1),
        "outcome": turn["outcome"],
        "llm_calls": turn["llm_calls"],
    }


async def spoken(client: Client, turns: int, *, fresh: bool) -> list[dict[str, Any]]:
    made = []
    for number in range(turns):
        shipped = clips("en")
        clip = shipped[number % len(shipped)]
        turn, _ = await client.wav_turn(clip.wav, "en", reset_history=fresh or number == 0)
        made.append(row(dict(turn)))
        await asyncio.sleep(QUIET_S)
    return made


async def typed(client: Client, turns: int) -> list[dict[str, Any]]:
    made = []
    for number in range(turns):
        words = clips("en")[number % len(clips("en"))].words
        made.append(row(dict(await client.ask(words, speak=False))))
        await asyncio.sleep(QUIET_S)
    return made


async def cold(address: str) -> list[dict[str, Any]]:
    """The same prompt, made new in its first word."""
    made = []
    for number in range(COLD):
        asked = prompt(f"Number {number} {time.time_ns()}. {SYSTEM}", (), clips("en")[0].words)
        async with aclosing(
            OpenAIResponder(address, temperature=0.0, first_token_timeout_s=120).respond(asked, max_tokens=1)
        ) as stream:
            async for piece in stream:
                if isinstance(piece, Usage):
                    made.append(
                        {
                            "prompt": piece.prompt_tokens,
                            "cached": piece.cached_tokens,
                            "engine_ms": piece.prompt_ms,
                        }
                    )
    return made


async def measure(turns: int) -> dict[str, Any]:
    here = places()
    settings = {"language": "en", "llm.system_prompt_en": SYSTEM}
    config = load(here.config_file, {"language": "en"})
    prepare(config, here, Silent())
    load_before = os.getloadavg()[0]
    async with own_daemon(here, settings, alone=True), Client(here.control_socket, "en") as client:
        await until_ready(client)
        await spoken(client, 3, fresh=True)
        ways = {
            "alone": await spoken(client, turns, fresh=True),
            "one conversation": await spoken(client, turns, fresh=False),
            "typed": await typed(client, turns),
        }
        status = await client.status()
        engine = next(found["name"] for found in status["engines"] if found["stage"] == "llm")
        address = f"unix://{here.engine_socket(engine)}"
        ways["cold"] = await cold(address)
    return {
        "conditions": {
            **status["conditions"],
            "load_average_before": round(load_before, 2),
            "system": platform.machine(),
            "history_turns": config.llm.history_turns,
            "budget_ms": BUDGET_MS,
        },
        "ways": {
            name: {
                # From the second turn on; a cold prompt has no first turn.
                "engine_ms": distribution([r["engine_ms"] for r in (rows if name == "cold" else rows[1:])]),
                "turns": rows,
            }
            for name, rows in ways.items()
        },
    }


def markdown(result: dict[str, Any]) -> str:
    lines = [
        "| first token, the engine's own time, ms | p50 | p90 | max | n | prompt tokens | of them cached |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, way in result["ways"].items():
        rows = way["turns"] if name == "cold" else way["turns"][1:]
        figures = way["engine_ms"]
        prompts, cached = ([r[key] for r in rows if r[key] is not None] for key in ("prompt", "cached"))
        lines.append(
            f"| {name} | {figures['p50']} | {figures['p90']} | {figures['max']} | {figures['n']} |"
            f" {min(prompts)} to {max(prompts)} | {min(cached)} to {max(cached)} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result = asyncio.run(measure(given.turns))
    print(json.dumps(result, indent=1) if given.json else markdown(result))
    conditions = result["conditions"]
    print(f"load {conditions['load_average_before']}, {conditions['cores']} cores", file=sys.stderr)
    slow = [n for n, way in result["ways"].items() if n != "cold" and way["engine_ms"]["p50"] > BUDGET_MS]
    if slow:
        print(f"over {BUDGET_MS:g} ms: {', '.join(slow)}", file=sys.stderr)
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
