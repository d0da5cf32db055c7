"""What the menu says, as a value: the same entries for ever; texts, marks and visibility change. Pure.

Hosts close an open menu when entries come and go, so none does: what may be there later is there, hidden.
And none of the menu itself is ever hidden: what the hand is about to click must not move away under it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ondam.control import wire
from ondam.messages import text
from ondam_ui.tray.seen import Seen, Verb

Icon = Literal[
    "starting", "listening", "hearing", "thinking", "speaking", "muted", "switching", "fault", "offline"
]

Language = Literal["ko", "en"]
"""As ``ondam.types``, which would load numpy."""

STAGES = (
    "endpoint",
    "ipc",
    "stt",
    "llm_first_token",
    "first_clause",
    "tts_first_audio",
    "playback_buffer",
)
"""The seven, as ``wire.StagesMs`` has them."""

DRAFTED = frozenset({"stt", "llm_first_token", "first_clause", "tts_first_audio"})
"""Stages that a draft may have behind it before the endpoint."""

ANSWERING = frozenset({"hearing", "recognizing", "thinking", "speaking"})
"""States with an answer that could be stopped. While a voice is heard one may sound beneath it."""

NOT_RUNNING = frozenset({"daemon_not_running", "daemon_gone"})
"""Troubles with which nobody is there to hear. Of a daemon that only cannot be reached that is not known."""

FAULT_LINES = 16
"""Four faults or so, each with what to do, told in lines."""

DEVICES = 12
"""Microphones or speakers that can be chosen; the panel shows more."""

COLUMNS = 60
"""Of a line in the menu; Hangul takes two each. A wider menu covers half of a small screen."""

WIDE = 82
"""Columns of the widest line: the last answer's, with its slowest stage. Models' names are cut to it."""

ENOUGH = 20
"""Answers, of which one is one in twenty: of fewer the slowest is told."""

FIGURE = "\N{FIGURE SPACE}"
"""As wide as a digit: figures stand under one another in a proportional font too."""


@dataclass(frozen=True, slots=True)
class Do:
    """What a click asks for. ``value``: the mode, or the device's name (None: the system's default)."""

    verb: Verb
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. ``key``, ``radio``, ``marked`` being None or not, and ``inside`` having entries or not never
    change for a place in the menu; ``separator`` neither."""

    key: str
    text: str = ""
    does: Do | None = None
    marked: bool | None = None
    radio: bool = False
    enabled: bool = True
    visible: bool = True
    separator: bool = False
    inside: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """Icon, the words that a screen reader has for it, and the menu."""

    icon: Icon
    title: str
    entries: tuple[Entry, ...]

    def walk(self) -> Iterator[Entry]:
        """Every entry, those inside others too."""
        return _walk(self.entries)


def shown(seen: Seen, language: Language) -> Shown:
    """What a person sees."""
    state = _state(seen, language)
    return Shown(
        icon(seen),
        text("tray_title", language, state=state),
        (
            _faults(seen, language),
            Entry("state", state, Do("panel")),
            _line("above_turn"),
            *_turn(seen, language),
            *_figures(seen, language),
            _line("above_talk"),
            *_talk(seen, language),
            _line("above_rest"),
            Entry("panel", _done(seen, "panel") or text("tray_panel", language), Do("panel")),
            Entry(
                "diagnostics",
                _done(seen, "diagnostics") or text("tray_diagnostics", language),
                Do("diagnostics"),
                enabled=seen.status is not None,
            ),
            Entry("login", text("tray_login", language), Do("login"), marked=seen.at_login),
            _line("above_end"),
            Entry("quit", _quit(seen, language), Do("quit")),
            Entry(
                "shutdown", text("tray_shutdown", language), Do("shutdown"), enabled=seen.status is not None
            ),
        ),
    )


def icon(seen: Seen) -> Icon:
    """The picture. A microphone that is gone is a fault: nothing is heard, whatever the daemon does."""
    status = seen.status
    if status is None:
        return "offline"
    if status["state"] == "listening":
        if status["microphone"]["state"] == "missing" or _silent(status):
            return "fault"
        if status["mode"] == "muted" or status["microphone"]["state"] == "none":
            return "muted"
    return "thinking" if status["state"] == "recognizing" else status["state"]


def slowest(seen: Seen) -> str | None:
    """The stage of the last turn that is furthest over what it may take; None where none is."""
    over = _over(seen)
    return max(over, key=lambda stage: over[stage], default=None)


def wrapped(told: str, columns: int = COLUMNS) -> list[str]:
    """``told`` in lines of at most ``columns``, cut between words where there are any."""
    lines, line = [], ""
    for word in told.split():
        for piece in _pieces(word, columns):
            longer = f"{line} {piece}" if line else piece
            if _width(longer) > columns:
                lines.append(line)
                longer = piece
            line = longer
    return [*lines, line] if line else lines


def shortened(told: str, columns: int = COLUMNS) -> str:
    """``told`` in one line."""
    lines = wrapped(told, columns - 1)
    return lines[0] if len(lines) < 2 else f"{lines[0]}…"


def _done(seen: Seen, verb: Verb) -> str:
    """In the place of what was clicked, for a while: what it came to."""
    return seen.remark.text if seen.remark is not None and seen.remark.verb == verb else ""


def _state(seen: Seen, language: Language) -> str:
    status = seen.status
    if status is None:
        gone = seen.trouble is not None and seen.trouble.code in NOT_RUNNING
        return text("tray_state_offline" if gone else "tray_state_unreachable", language)
    if status["state"] == "listening":
        if status["microphone"]["state"] in {"missing", "none"}:
            return text(f"tray_deaf_{status['microphone']['state']}", language)
        if _silent(status):
            return text("tray_deaf_silent", language)
        return text(f"tray_waits_{status['mode']}", language)
    return text(f"tray_state_{status['state']}", language)


def _silent(status: wire.Status) -> bool:
    """Listening, and nothing arrives: a muted one gives exact silence (docs/decisions/exact-silence.md)."""
    return any(fault["code"] == "microphone_silent" for fault in status["faults"])


def _quit(seen: Seen, language: Language) -> str:
    """What goes on without the icon."""
    match icon(seen):
        case "offline":
            return text("tray_quit", language)
        case "listening" | "hearing" | "thinking" | "speaking":
            return text("tray_quit_hears", language)
        case _:
            return text("tray_quit_runs", language)


def _faults(seen: Seen, language: Language) -> Entry:
    """The first in one line; all of them, whole and with what to do, inside."""
    told = list(_told(seen))
    lines = list(_fault_lines(told)) or [text("tray_nothing_wrong", language)]
    if len(lines) > FAULT_LINES:
        lines[FAULT_LINES - 1 :] = [text("tray_more_faults", language)]
    inside = []
    for number in range(FAULT_LINES):
        line = lines[number] if number < len(lines) else ""
        inside.append(Entry(f"fault.{number}", line, Do("panel"), visible=bool(line)))
    said = text("tray_no_faults", language)
    if told:
        said = f"⚠ {shortened(_headline(told[0][0]))}"
    if len(told) > 1:
        said = text("tray_faults", language, first=said, more=len(told) - 1)
    return Entry("faults", said, inside=tuple(inside))


def _headline(told: str) -> str:
    """The first sentence of a fault: it says what is wrong, the others what becomes of it."""
    first, dot, rest = told.partition(". ")
    return first if dot and rest else told


def _told(seen: Seen) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do: each once. For a while also what a click could not do."""
    if seen.remark is not None and seen.remark.verb is None:
        yield seen.remark.text, ""
    if seen.status is None:
        if seen.trouble is not None:
            yield seen.trouble.text, seen.trouble.next
        return
    engines = seen.status["engines"]
    faults = [*seen.status["faults"], *(fault for engine in engines for fault in engine["faults"])]
    yield from dict.fromkeys((fault["text"], fault["next"]) for fault in faults)


def _fault_lines(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    for said, after in told:
        yield from (f"{'  ' if number else '⚠'} {line}" for number, line in enumerate(wrapped(said)))
        yield from (f"    {' ' if number else '→'} {line}" for number, line in enumerate(wrapped(after)))


def _turn(seen: Seen, language: Language) -> Iterator[Entry]:
    turn = seen.last
    over, worst = _over(seen), slowest(seen)
    if turn is None or turn["first_audio_ms"] is None:
        yield Entry("turn", text("tray_no_turn", language), Do("panel"))
    else:
        after_s = turn["first_audio_ms"] / 1000
        said = text("tray_turn_in_time" if turn["over_budget"] is False else "tray_turn", language, s=after_s)
        if worst is not None:
            said = text("tray_turn_slow", language, s=after_s, stage=text(f"tray_stage_{worst}", language))
        yield Entry("turn", said, Do("panel"))
    for name in STAGES:
        row = f"{_figure(_took(turn, name)):{FIGURE}>6} ms{FIGURE * 2}{text(f'tray_stage_{name}', language)}"
        if name in over:
            code: Literal["tray_slowest", "tray_over"] = "tray_slowest" if name == worst else "tray_over"
            row += text(code, language, target=seen.targets_ms[name], ms=over[name])
        elif _drafted(turn, name):
            row += text("tray_drafted", language)
        elif over and name in seen.targets_ms and _took(turn, name) is not None:
            # Why one that took longer is not the slow one.
            row += text("tray_target", language, target=seen.targets_ms[name])
        yield Entry(f"stage.{name}", row, Do("panel"))


def _figure(took_ms: float | None) -> str:
    if took_ms is None:
        return "–"
    return f"{took_ms:.0f}" if took_ms >= 0.5 else "<1"


def _drafted(turn: wire.Turn | None, stage: str) -> bool:
    """Nothing of the stage was waited for, and a draft that was kept says why."""
    if turn is None or stage not in DRAFTED or turn["drafts"]["made"] <= turn["drafts"]["dropped"]:
        return False
    took = _took(turn, stage)
    return took is not None and took < 0.5


def _took(turn: wire.Turn | None, stage: str) -> float | None:
    if turn is None:
        return None
    return {str(name): value for name, value in turn["stages_ms"].items()}.get(stage)  # type: ignore[return-value]


def _over(seen: Seen) -> dict[str, float]:
    """Stages that took longer than they may, and by how much. A turn within its whole budget has none:
    what one stage lost, another has won."""
    if seen.last is None or not seen.last["over_budget"]:
        return {}
    excess = {
        stage: took - target
        for stage, target in seen.targets_ms.items()
        if (took := _took(seen.last, stage)) is not None
    }
    return {stage: ms for stage, ms in excess.items() if ms >= 1}


def _figures(seen: Seen, language: Language) -> Iterator[Entry]:
    told = text("tray_no_today", language)
    if (today := seen.today) is not None:
        told = text(
            _how_many(today.turns),
            language,
            p50=today.p50_ms / 1000,
            p95=today.p95_ms / 1000,
            # Of two the middle lies halfway between them.
            quickest=(2 * today.p50_ms - today.slowest_ms) / 1000,
            slowest=today.slowest_ms / 1000,
            count=today.turns,
            kind=text(f"tray_population_{today.population}", language),
        )
    yield Entry("today", told, Do("panel"))
    yield Entry("plan", shortened(_plan(seen, language), WIDE), Do("panel"))


def _how_many(turns: int) -> str:
    """Of one or two answers nothing is usual: they are told as they were."""
    if turns <= 2:
        return "tray_today_one" if turns == 1 else "tray_today_two"
    return "tray_today" if turns >= ENOUGH else "tray_today_few"


def _plan(seen: Seen, language: Language) -> str:
    """What serves: the model of each stage, or the engine where it names none, and where it computes."""
    served = [engine for engine in (seen.status["engines"] if seen.status else ()) if not engine["spare"]]
    devices = {engine["device"] for engine in served}
    one = devices.pop() if len(devices) == 1 else None
    named = {}
    for stage in ("stt", "llm", "tts"):
        serving = [engine for engine in served if engine["stage"] == stage]
        told = [
            (engine["model"] or engine["name"])
            + (f" ({_short(engine['device'])})" if engine["device"] and not one else "")
            for engine in serving
        ]
        named[stage] = " + ".join(told) or "–"
    if not one:
        return text("tray_plan", language, **named)
    words = {"CPU": text("tray_on_cpu", language), "GPU": text("tray_on_gpu", language)}
    return text("tray_plan_on", language, device=words.get(_short(one), one), **named)


def _short(device: str) -> str:
    """The kind, where everybody has a word for it; three of them must fit into a line."""
    if device.startswith("cuda"):
        return "GPU"
    return "CPU" if device == "cpu" else device


def _talk(seen: Seen, language: Language) -> Iterator[Entry]:
    status = seen.status
    here = status is not None
    muted = status is not None and status["mode"] == "muted"
    yield Entry(
        "listen",
        text("tray_listening" if seen.asking else "tray_listen", language),
        Do("listen"),
        enabled=here and not muted and (seen.asking or not _just_speak(status)),
    )
    answering = status is not None and status["state"] in ANSWERING
    yield Entry("stop", text("tray_stop", language), Do("stop"), enabled=answering)
    yield Entry("mute", text("tray_mute", language), Do("mute"), marked=muted, enabled=here)
    now = status["mode"] if status else None
    yield Entry(
        "mode",
        text("tray_mode", language, mode=text(f"tray_mode_{now}", language) if now else "–"),
        enabled=here,
        inside=tuple(
            Entry(
                f"mode.{mode}",
                text(f"tray_mode_{mode}", language),
                Do("mode", mode),
                marked=mode == now,
                radio=True,
            )
            for mode in wire.MODES
        ),
    )
    yield _devices("microphone", seen, language)
    yield _devices("speaker", seen, language)


def _just_speak(status: wire.Status | None) -> bool:
    """Whatever is said is listened to already. Not so while an answer sounds or a voice is weighed."""
    return status is not None and status["mode"] == "open" and status["state"] == "listening"


def _devices(kind: wire.DeviceKind, seen: Seen, language: Language) -> Entry:
    found: list[wire.DeviceChoice] = []
    if seen.devices is not None:
        found = seen.devices["microphones" if kind == "microphone" else "speakers"]
    chosen = next((_named(device, language) for device in found if device["chosen"]), None)
    default = next((device["label"] for device in found if device["default"]), "")
    # The one that is chosen has a place in any case.
    beyond = [device for device in found[DEVICES:] if device["chosen"]]
    found = [*found[: DEVICES - len(beyond)], *beyond]
    named = text("tray_default", language, name=default) if default else text("tray_system", language)
    inside = [Entry(f"{kind}.default", named, Do(kind, None), marked=chosen is None, radio=True)]
    for number in range(DEVICES):
        if number < len(found):
            device = found[number]
            inside.append(
                Entry(
                    f"{kind}.{number}",
                    _named(device, language),
                    Do(kind, device["name"]),
                    marked=device["chosen"],
                    radio=True,
                )
            )
        else:
            inside.append(Entry(f"{kind}.{number}", does=Do(kind), marked=False, radio=True, visible=False))
    code: Literal["tray_microphone", "tray_speaker"] = (
        "tray_microphone" if kind == "microphone" else "tray_speaker"
    )
    return Entry(
        kind,
        _done(seen, kind) or text(code, language, name=chosen or named),
        enabled=seen.status is not None and seen.devices is not None,
        inside=tuple(inside),
    )


def _named(device: wire.DeviceChoice, language: Language) -> str:
    return text("tray_device" if device["present"] else "tray_device_gone", language, name=device["label"])


def _line(key: str, *, visible: bool = True) -> Entry:
    return Entry(key, separator=True, visible=visible)


def _walk(entries: tuple[Entry, ...]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        yield from _walk(entry.inside)


def _pieces(word: str, columns: int) -> Iterator[str]:
    """A path may be longer than a line."""
    piece = ""
    for letter in word:
        if _width(piece + letter) > columns:
            yield piece
            piece = ""
        piece += letter
    yield piece


def _width(told: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in told)
