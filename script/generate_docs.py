"""Writes the reference parts of docs/ from the code. ``--check`` changes nothing and fails where they differ.

A part is what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a page.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from ondam.cli import command as ondam
from ondam.control import wire
from ondam.control.failure import STATUSES
from ondam.dialog import events, machine
from ondam.dialog.endpointing import Drafting, SmartTurn
from ondam.dialog.history import History
from ondam.types import DraftId, TurnId

DOCS = Path(__file__).parent.parent / "docs"

PART = re.compile(r"(<!-- generated: (?P<name>[a-z_]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> Iterator[str]:
    context = click.Context(ondam, info_name="ondam", max_content_width=100)
    for name in ondam.list_commands(context):
        found = ondam.get_command(context, name)
        assert found is not None
        yield from one_command(found, click.Context(found, info_name=name, parent=context), "##")


def one_command(command: click.Command, context: click.Context, heading: str) -> Iterator[str]:
    pieces = command.collect_usage_pieces(context)
    yield f"{heading} `{' '.join([context.command_path, *pieces])}`\n"
    yield paragraphs(command.help or "")
    records = (option.get_help_record(context) for option in command.params)
    rows = [record for record in records if record and record[1]]
    if rows:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| `{cell(option)}` | {cell(meaning)} |" for option, meaning in rows)
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from one_command(child, click.Context(child, info_name=name, parent=context), "###")


def routes() -> Iterator[str]:
    yield "| call | who | takes | gives |\n|---|---|---|---|"
    for route in wire.ROUTES:
        takes = f"{route.takes} (at most {size(route.limit)})" if route.limit else route.takes
        cells = (f"`{route.method} {route.path}`", route.permission, takes, route.gives)
        yield f"| {' | '.join(map(cell, cells))} |"


def shapes() -> Iterator[str]:
    for name, shape in vars(wire).items():
        if typing.is_typeddict(shape) and shape.__module__ == wire.__name__:
            yield f"### {name}\n"
            yield paragraphs(shape.__doc__ or "")
            yield "| field | type |\n|---|---|"
            for field, hint in shape.__annotations__.items():
                written = getattr(hint, "__forward_arg__", str(hint))
                yield f"| `{field}` | `{cell(written)}` |"
            yield ""


def words() -> Iterator[str]:
    yield "| type | values |\n|---|---|"
    for name in ("State", "Mode", "DeviceState", "EchoMode", "EngineState", "Permission", "Layer"):
        yield f"| {name} | {', '.join(f'`{value}`' for value in typing.get_args(getattr(wire, name)))} |"


TURN, NEXT, DRAFT, OTHER = TurnId(1), TurnId(2), DraftId(1), DraftId(9)

PHASES: dict[str, machine.Phase] = {
    "Listening": machine.Listening(),
    "Hearing": machine.Hearing(TURN),
    "Hearing, paused": machine.Hearing(
        TURN, silence_ms=160, judging=True, complete=0.9, draft=machine.Draft(DRAFT, words="q"), made=1
    ),
    "Recognizing": machine.Recognizing(TURN, DRAFT, endpoint_ns=0),
    "Answering, not heard yet": machine.Answering(TURN, DRAFT, "q", aloud=True, endpoint_ns=0),
    "Answering, heard": machine.Answering(TURN, DRAFT, "q", aloud=True, heard="a", endpoint_ns=0),
    "Hearing, over an answer": machine.Hearing(
        NEXT,
        silence_ms=64,
        draft=machine.Draft(OTHER),
        made=1,
        over=machine.Answering(TURN, DRAFT, "q", aloud=True, heard="a"),
    ),
    "Hearing, after a false endpoint": machine.Hearing(
        TURN,
        silence_ms=64,
        draft=machine.Draft(OTHER),
        made=2,
        over=machine.Answering(TURN, DRAFT, "q", aloud=True, heard="a"),
        taken_back=True,
    ),
    "Recognizing, over an answer": machine.Recognizing(
        NEXT, OTHER, endpoint_ns=0, over=machine.Answering(TURN, DRAFT, "q", aloud=True, heard="a")
    ),
}

HAPPENINGS: dict[str, events.Event] = {
    "VoiceNoticed": events.VoiceNoticed(1),
    "VoiceFaded": events.VoiceFaded(1),
    "SpeechStarted": events.SpeechStarted(1),
    "SpeechStarted (too late to take back)": events.SpeechStarted(2_000_000_000),
    "Pause (32 ms)": events.Pause(1, 32),
    "Pause (192 ms)": events.Pause(1, 192),
    "Judged (complete)": events.Judged(1, TURN, 0, 0.9),
    "VoiceFell": events.VoiceFell(1),
    "SpeechResumed": events.SpeechResumed(1),
    "SpeechSure": events.SpeechSure(1),
    "UtteranceFull": events.UtteranceFull(1),
    "PieceHeard (nothing)": events.PieceHeard(1, TURN, ""),
    "MicrophoneLost": events.MicrophoneLost(1),
    "Transcribed (words)": events.Transcribed(1, DRAFT, "q"),
    "Transcribed (nothing)": events.Transcribed(1, DRAFT, ""),
    "Transcribed (of another draft)": events.Transcribed(1, OTHER, "words"),
    "Transcribed (of another draft, a sign of listening)": events.Transcribed(1, OTHER, "mhm"),
    "Transcribed (of another draft, a wish for silence)": events.Transcribed(1, OTHER, "stop"),
    "Transcribed (of another draft, its end alone a sign of listening)": events.Transcribed(
        1, OTHER, "q, mhm", added="mhm"
    ),
    "Transcribed (of another draft, its end alone a wish for silence)": events.Transcribed(
        1, OTHER, "q. Stop.", added="stop"
    ),
    "Ready": events.Ready(1, DRAFT),
    "Heard": events.Heard(1, DRAFT, "a"),
    "Answered": events.Answered(1, DRAFT, spoken=True),
    "Failed": events.Failed(1, DRAFT, "excuse_llm"),
    "Asked": events.Asked(1, "q", aloud=True),
    "SayRequested": events.SayRequested(1, "s"),
    "ListenRequested": events.ListenRequested(1),
    "Pressed": events.Pressed(1),
    "Released": events.Released(1),
    "ModeSet (muted)": events.ModeSet(1, "muted"),
    "StopRequested": events.StopRequested(1),
}


def dialog() -> Iterator[str]:
    """Every phase against every event: the phase after it, and the actions."""
    policy = SmartTurn(
        threshold=0.7, sure=0.8, sure_ms=192, complete_ms=512, incomplete_ms=1200, unsure_ms=600
    )
    drafting = Drafting(after_ms=32, most=8, take_back_ms=1500, at_fall=True)
    for phase_name, phase in PHASES.items():
        yield f"### {phase_name}\n"
        yield "| event | then | actions |\n|---|---|---|"
        for name, event in HAPPENINGS.items():
            state = machine.State(policy, History(6), drafting, phase, TurnId(2), DraftId(2))
            after, actions = machine.step(state, event)
            if after.phase == phase and not actions:
                continue
            done = ", ".join(f"`{type(action).__name__}`" for action in actions)
            yield f"| {name} | {type(after.phase).__name__} | {done} |"
        yield "\nNothing else changes anything here.\n"


def statuses() -> Iterator[str]:
    yield "| status | code |\n|---|---|"
    for code, status in sorted(STATUSES.items(), key=lambda item: item[1]):
        yield f"| {status} | `{code}` |"
    yield "| 503 | every other one |"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "routes": routes,
    "shapes": shapes,
    "words": words,
    "statuses": statuses,
    "dialog": dialog,
}


def paragraphs(text: str) -> str:
    """reStructuredText's double backticks as Markdown's single ones."""
    return inspect.cleandoc(text).replace("``", "`") + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def size(count: int) -> str:
    return f"{count // wire.MIB} MiB" if count >= wire.MIB else f"{count // wire.KIB} KiB"


def fresh(page: str) -> str:
    def part(found: re.Match[str]) -> str:
        written = "\n".join(PARTS[found["name"]]()).strip()
        return f"{found[1]}\n{written}\n\n{found[3]}"

    return PART.sub(part, page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail where a page differs")
    check: bool = parser.parse_args().check
    stale = [path for path in sorted(DOCS.glob("*.md")) if fresh(page := path.read_text("utf-8")) != page]
    for path in stale:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is not what the code says: run script/generate_docs.py")
        else:
            path.write_text(fresh(path.read_text("utf-8")), "utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
