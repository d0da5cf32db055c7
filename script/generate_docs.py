"""Writes the reference parts of docs/ from the code. ``--check`` changes nothing and fails where they differ.

A part is what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a page.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import tomllib
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from ondam import messages
from ondam.cli import command as ondam
from ondam.config.keys import COUNTS
from ondam.control import wire
from ondam.control.failure import STATUSES
from ondam.dialog import events, machine
from ondam.dialog.endpointing import Drafting, SmartTurn
from ondam.dialog.history import History
from ondam.types import DraftId, Language, TurnId

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
    for name in (
        "State",
        "Mode",
        "DeviceKind",
        "DeviceState",
        "SettingKind",
        "EchoMode",
        "EngineState",
        "Permission",
        "Layer",
    ):
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


FAULTS = DOCS / "faults.toml"

FAULT_HEADS = {
    "en": ("what goes wrong", "what you hear or see", "what is lost", "next good turn"),
    "ko": ("무엇이 잘못되나", "무엇을 듣거나 보나", "무엇을 잃나", "다음 정상 대화까지"),
}
FAULT_WORDS = {
    "en": ("nothing", "at once", "within {} s", "or", "nothing: it is not noticed"),
    "ko": ("없음", "바로", "{}초 안", "또는", "없음: 알아차릴 일이 없음"),
}
FAULT_STAGE = "llm"
"""Whose words stand for those of all three."""


def faults(language: Language) -> Iterator[str]:
    """``docs/faults.toml`` as a table, with the words that a person is told."""
    nothing, at_once, within, either, unnoticed = FAULT_WORDS[language]
    yield f"| {' | '.join(FAULT_HEADS[language])} |\n|---|---|---|---|"
    for case in tomllib.loads(FAULTS.read_text("utf-8")).values():
        told = []
        for codes in case["told"]:
            found = [code.format(stage=FAULT_STAGE) for code in codes.split("|")]
            # Facts stay as they stand in the text: {engine}.
            told.append(f" *{either}* ".join(f"“{messages.text(code, language)}”" for code in found))
        soon = within.format(case["within_s"]) if case["within_s"] else at_once
        lost = case.get(f"lost_{language}", nothing)
        cells = (case[language], "<br>".join(told) or unnoticed, lost, soon)
        yield f"| {' | '.join(map(cell, cells))} |"


WHEN = {
    "live": "at once, or from the next turn on",
    "engine": "when an engine that was started for it serves",
    "restart": "when the daemon is started again",
}


def keys() -> Iterator[str]:
    yield "| a change counts | keys |\n|---|---|"
    for when, words in WHEN.items():
        named = ", ".join(f"`{key}`" for key, counts in COUNTS.items() if counts == when)
        yield f"| {words} | {named} |"


SOAK = DOCS / "soak.json"

SOAK_WORDS = {
    "en": {
        "never": "No result is kept yet: `script/soak --write` puts it here.",
        "stub": "fakes",
        "real": "embedded engines",
        "head": "| | turns | faults | answered | excused | ended by their user | other, explained | silent |",
        "growth": "| what must not grow ({0}) | settled | at the end | |",
        "told": "{at}, seed {seed}, {cores} cores, {minutes} min: {turns} turns, {faults} faults; {broken}.",
        "not_judged": "not judged: {} readings",
        "kept": "every promise that was judged was kept",
        "broken": "{} promises broken",
    },
    "ko": {
        "never": "아직 남긴 결과가 없습니다. `script/soak --write`가 여기에 씁니다.",
        "stub": "가짜 엔진",
        "real": "내장 엔진",
        "head": "| | 대화 | 고장 | 답함 | 사과함 | 사용자가 끝냄 | 그 밖의 설명된 것 | 말없이 끝남 |",
        "growth": "| 늘면 안 되는 것({0}) | 안정된 뒤 | 끝날 때 | |",
        "told": "{at}, 시드 {seed}, 코어 {cores}개, {minutes}분: 대화 {turns}건, 고장 {faults}건. {broken}.",
        "not_judged": "판정하지 않음: 측정 {}번",
        "kept": "판정한 약속은 모두 지킴",
        "broken": "지키지 못한 약속 {}건",
    },
}
SOAK_COUNTED = ("answered", "excused", "ended by its user")


def soak(language: Language) -> Iterator[str]:
    """``docs/soak.json``, as ``script/soak --write`` left it."""
    words = SOAK_WORDS[language]
    if not SOAK.exists():
        yield words["never"]
        return
    told = json.loads(SOAK.read_text("utf-8"))
    broken = len(told["broken"])
    said = words["broken"].format(broken) if broken else words["kept"]
    yield words["told"].format(**{**told, "broken": said}) + "\n"
    yield f"{words['head']}\n|---|---|---|---|---|---|---|---|"
    parts = [told[name] for name in ("stub", "real") if name in told]
    for part in parts:
        found = part["verdicts"]
        silent = found.get("silent", 0)
        rest = part["turns"] - sum(found.get(key, 0) for key in SOAK_COUNTED) - silent
        counts = (part["turns"], part["faults"], *(found.get(key, 0) for key in SOAK_COUNTED), rest, silent)
        yield f"| {words[part['name']]} | {' | '.join(f'{count:,}' for count in counts)} |"
    for part in parts:
        yield f"\n{words['growth'].format(words[part['name']])}\n|---|---|---|---|"
        for name, found in part["growth"].items():
            judged = "" if found["judged"] else f" ({words['not_judged'].format(found['readings'])})"
            share = f"{found['share']:+.1%}{judged}"
            yield f"| {name} | {found['first']:,.1f} | {found['last']:,.1f} | {share} |"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "routes": routes,
    "shapes": shapes,
    "words": words,
    "keys": keys,
    "statuses": statuses,
    "dialog": dialog,
    "soak_en": partial(soak, "en"),
    "soak_ko": partial(soak, "ko"),
    "faults_en": partial(faults, "en"),
    "faults_ko": partial(faults, "ko"),
}


def paragraphs(text: str) -> str:
    """reStructuredText's double backticks as Markdown's single ones."""
    return inspect.cleandoc(text).replace("``", "`") + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


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
    pages = sorted((*DOCS.glob("*.md"), *DOCS.glob("ko/*.md")))
    stale = [path for path in pages if fresh(page := path.read_text("utf-8")) != page]
    for path in stale:
        if check:
            print(f"{path.relative_to(DOCS.parent)} is not what the code says: run script/generate_docs.py")
        else:
            path.write_text(fresh(path.read_text("utf-8")), "utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
