"""``--plot``: a run as one SVG, by hand: dots, lines and words are all it takes. Pure.

Colours follow the reader's light or dark. Why no plotting library: docs/decisions/comparing-runs.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as Xml

from ondam import messages
from ondam.journal.warmth import POPULATIONS
from ondam.measure.distribution import distribution, is_answered
from ondam.measure.waterfall import ROWS
from ondam.types import Language

WIDTH, LEFT, RIGHT = 960, 260, 30
"""Of the whole, and what stands beside the axes."""

ROW, BAR = 64, 20
"""Height of one distribution, and of one line of the waterfall."""

DOT = 3.0

LONGEST_LINE, LONGEST_NAME = 125, 48
"""Characters of a line that fits the width, and of a name that somebody else gave."""

MOST_DOTS = 1500
"""Of more turns, so many at even ranks are drawn: the shape is the same, and the file stays small."""

BEYOND = 3
"""An axis ends at so many times p90; what lies beyond is counted at its edge, and squeezes nothing."""

LIGHT = {
    "ink": "#1c2024",
    "faint": "#6b737c",
    "rule": "#d5dade",
    "paper": "#ffffff",
    "a": "#1f6fb2",
    "b": "#b8521c",
    "cold": "#6b737c",
    "budget": "#a02c2c",
}

DARK = {
    "ink": "#e7eaee",
    "faint": "#9aa3ad",
    "rule": "#3a424b",
    "paper": "#14181c",
    "a": "#6cb4ee",
    "b": "#f0995f",
    "cold": "#9aa3ad",
    "budget": "#f08080",
}


def _style() -> str:
    """No variables: only browsers know those, and a plot is also looked at elsewhere."""
    shapes = (
        "text { font: 13px system-ui, sans-serif; } text.small { font-size: 10.5px; }"
        " text.small { paint-order: stroke; stroke-width: 3px; stroke-linejoin: round; }"
        " .title { font-weight: 600; } circle { fill-opacity: 0.65; } .median { stroke-width: 2; }"
        " .p95 { stroke-dasharray: 2 2; } line.budget { stroke-dasharray: 4 3; }"
    )
    return f"{shapes}\n{_colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {_colours(DARK)} }}\n"


def _colours(of: Mapping[str, str]) -> str:
    return (
        f"text {{ fill: {of['ink']}; }} .paper {{ fill: {of['paper']}; }}"
        f" text.faint {{ fill: {of['faint']}; }} text.small {{ stroke: {of['paper']}; }}"
        f" .rule {{ stroke: {of['rule']}; }} .median, .p95 {{ stroke: {of['ink']}; }}"
        f" .a {{ fill: {of['a']}; }} .b {{ fill: {of['b']}; }}"
        f" circle.cold {{ fill: none; stroke: {of['cold']}; }}"
        f" line.budget {{ stroke: {of['budget']}; }} text.budget {{ fill: {of['budget']}; }}"
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Turns of one side and one population."""

    label: str
    count: str
    look: str
    """``a``, ``b`` or ``cold``, as in the style."""
    turns: Sequence[Mapping[str, Any]]


def svg(result: Mapping[str, Any], language: Language) -> str:
    """What ``ondam bench --json`` prints, as an SVG document."""
    drawing = _Drawing(result, language)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(drawing.root, "unicode") + "\n"


class _Drawing:
    """Draws from top to bottom; ``_y`` is how far it has come."""

    def __init__(self, result: Mapping[str, Any], language: Language) -> None:
        self._language: Language = language
        self.root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        run = result["conditions"]["run"]
        count = sum(len(side["turns"]) for _, _, side in _sides(result))
        title = self._say("plot_title", turns=count, date=str(run["started_at"])[:16].replace("T", " "))
        self._add("title").text = title
        self._add("desc").text = self._say("plot_described")
        self._add("style").text = _style()
        paper = self._add("rect", x=0, y=0, width=WIDTH, **{"class": "paper"})
        self._y = 30.0
        self._text(20, title, "title")
        self._y += 18
        for line in (*_conditions(result["conditions"]), *_profiles(result)):
            self._text(20, line, "faint")
            self._y += 17
        self._y -= 3
        groups = list(self._groups(result))
        for key, name in (("first_audio_ms", "plot_first_audio"), ("answer_ms", "plot_answer")):
            budget = run["budget_ms"] if key == "first_audio_ms" else None
            self._distribution(groups, key, self._say(name), budget)
        for look, label, side in _sides(result):
            self._waterfall(side["turns"], look, f" {label}" if label else "")
        height = self._y + 10
        paper.set("height", f"{height:.0f}")
        self.root.set("viewBox", f"0 0 {WIDTH} {height:.0f}")
        self.root.set("width", str(WIDTH))
        self.root.set("height", f"{height:.0f}")

    def _groups(self, result: Mapping[str, Any]) -> Iterator[Group]:
        for look, label, side in _sides(result):
            answered = [turn for turn in side["turns"] if is_answered(turn)]
            for population in reversed(POPULATIONS):
                turns = [turn for turn in answered if turn.get("population", "settled") == population]
                if turns:
                    words = [label, self._say(f"report_population_{population}")]
                    shown = look if population == "settled" else "cold"
                    yield Group(" · ".join(word for word in words if word), f"n={len(turns)}", shown, turns)

    def _distribution(self, groups: Sequence[Group], key: str, name: str, budget: float | None) -> None:
        rows = [(g, sorted(t[key] for t in g.turns if t.get(key) is not None)) for g in groups]
        rows = [(group, values) for group, values in rows if values]
        if not rows:
            return
        self._y += 26
        self._text(20, name, "title")
        self._y += 8
        top = self._y
        every = sorted(value for _, values in rows for value in values)
        p90 = float(distribution(every)["p90"] or 0)
        until = _round_up(max(min(every[-1], BEYOND * p90), budget or 0, 1.0))
        scale = (WIDTH - LEFT - RIGHT) / until
        bottom = top + ROW * len(rows)
        for tick in _ticks(until):
            x = LEFT + tick * scale
            self._line(x, top, x, bottom, "rule")
            self._text(x, f"{tick:g}", "faint", y=bottom + 15, anchor="middle")
        if budget is not None:
            x = LEFT + budget * scale
            self._line(x, top - 6, x, bottom, "budget")
            self._text(x + 4, self._say("plot_budget", budget=f"{budget:g}"), "budget", y=top - 8)
        for group, values in rows:
            middle = self._y + ROW / 2 + 5
            self._text(20, group.label, "", y=middle - 3)
            self._text(20, group.count, "faint", y=middle + 13)
            self._dots(values, until, scale, middle, group.look)
            figures = distribution(values)
            for percentile, look, label_at in (("p50", "median", -21), ("p95", "p95", 28)):
                value = float(figures[percentile] or 0)
                if value <= until:
                    x = LEFT + value * scale
                    self._line(x, middle - 19, x, middle + 19, look)
                    told = f"{percentile} {value:.0f}"
                    self._text(x, told, "small", y=middle + label_at, anchor="middle")
            beyond = sum(1 for value in values if value > until)
            if beyond:
                self._text(WIDTH - 4, f"{beyond} ▸", "", y=middle + 4, anchor="end")
            self._y += ROW
        self._y = bottom + 18

    def _dots(self, values: Sequence[float], until: float, scale: float, middle: float, look: str) -> None:
        shown = [value for value in values if value <= until]
        if len(shown) > MOST_DOTS:
            shown = [shown[round(i * (len(shown) - 1) / (MOST_DOTS - 1))] for i in range(MOST_DOTS)]
        columns: dict[int, list[float]] = {}
        for value in shown:
            columns.setdefault(int(value * scale / (2 * DOT)), []).append(value)
        highest = max(map(len, columns.values()), default=1)
        step = min(2 * DOT, 34 / highest)
        for column in columns.values():
            for place, value in enumerate(column):
                up = (place + 1) // 2 * (1 if place % 2 else -1)
                x, y = f"{LEFT + value * scale:.1f}", f"{middle + up * step:.1f}"
                self._add("circle", cx=x, cy=y, r=DOT, **{"class": look})

    def _waterfall(self, turns: Sequence[Mapping[str, Any]], look: str, side: str) -> None:
        turn = median_turn(turns)
        if turn is None:
            return
        marks, first = turn["marks_ms"], float(turn["first_audio_ms"])
        until = _round_up(max(first, 1.0))
        scale = (WIDTH - LEFT - RIGHT) / until
        self._y += 26
        told = self._say("plot_median", side=side, first=f"{first:.0f}", clip=_short(turn.get("clip") or "–"))
        self._text(20, told, "title")
        self._y += 8
        top = self._y
        bars = [row for row in ROWS if row[1] in marks and row[2] in marks]
        bottom = top + BAR * len(bars)
        for tick in _ticks(until):
            x = LEFT + tick * scale
            self._line(x, top, x, bottom, "rule")
            self._text(x, f"{tick:g}", "faint", y=bottom + 15, anchor="middle")
        for stage, begin, end in bars:
            # What a draft did before the last voice ended is not in the picture: nobody waited for it.
            began, ended = (min(max(float(marks[mark]), 0.0), until) for mark in (begin, end))
            self._text(20, self._say(f"stage_{stage}"), "", y=self._y + 14)
            x, wide = LEFT + began * scale, max((ended - began) * scale, 1.0)
            box = {"x": f"{x:.1f}", "y": self._y + 4, "width": f"{wide:.1f}", "height": BAR - 8}
            self._add("rect", rx=2, **box, **{"class": look})
            waited = turn["stages_ms"].get(stage)
            if waited is not None:
                shown, inside = f"{waited:.0f}", x + wide + 40 > WIDTH
                place = x - 5 if inside else x + wide + 5
                self._text(place, shown, "small", y=self._y + 14, anchor="end" if inside else "start")
            self._y += BAR
        self._y = bottom + 18

    def _text(
        self,
        x: float,
        words: str,
        look: str,
        *,
        y: float | None = None,
        anchor: str = "start",
    ) -> None:
        at = self._y if y is None else y
        made = self._add("text", x=f"{x:.1f}", y=f"{at:.1f}", **{"text-anchor": anchor, "class": look})
        made.text = "".join(c for c in words if c.isprintable())

    def _line(self, x1: float, y1: float, x2: float, y2: float, look: str) -> None:
        ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
        self._add("line", **ends, **{"class": look})

    def _add(self, tag: str, **attributes: object) -> Xml.Element:
        return Xml.SubElement(self.root, tag, {key: str(value) for key, value in attributes.items()})

    def _say(self, code: str, **facts: object) -> str:
        return messages.text(code, self._language, **facts)


def median_turn(turns: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The turn in the middle by first audio: a settled one where there is one. None where none was heard."""
    answered = [turn for turn in turns if is_answered(turn)]
    chosen = [turn for turn in answered if turn.get("settled")] or answered
    ordered = sorted(chosen, key=lambda turn: float(turn["first_audio_ms"]))
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _sides(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """How each looks, what it is called, and its turns."""
    other = result.get("against")
    if other is None:
        yield "a", "", result
        return
    yield "a", "A", result
    yield "b", "B", other


def _profiles(result: Mapping[str, Any]) -> Iterator[str]:
    """What A and B stand for."""
    if (other := result.get("against")) is not None:
        for side, of in (("A", result), ("B", other)):
            yield _short(f"{side}: {of.get('profile') or 'shipped'}", LONGEST_LINE)


def _short(name: object, longest: int = LONGEST_NAME) -> str:
    told = str(name)
    return told if len(told) <= longest else told[: longest - 1] + "…"


def _conditions(told: Mapping[str, Any]) -> Iterator[str]:
    engines = told.get("engines") or {}
    run = told["run"]
    models = [_short(engine.get("model") or engine.get("name")) for engine in engines.values()]
    if run.get("stub_ms"):
        models = ["stub " + ",".join(f"{key}={ms:g}" for key, ms in run["stub_ms"].items())]
    load = f"load {run['load_average_before']}–{run['load_average_after']}"
    parts = [
        f"{told.get('cores', '–')} cores",
        load,
        f"seed {run['seed']}",
        f"{told.get('version', '')}",
    ]
    rest = " · ".join(part for part in parts if part)
    one = " · ".join([*models, rest])
    if len(one) <= LONGEST_LINE:
        yield one
    else:
        yield _short(" · ".join(models), LONGEST_LINE)
        yield rest


def _round_up(value: float) -> float:
    """To the next tick."""
    step = _step(value)
    return math.ceil(value / step) * step


def _ticks(until: float) -> list[float]:
    step = _step(until)
    return [step * place for place in range(round(until / step) + 1)]


def _step(until: float) -> float:
    """1, 2 or 5 times a power of ten, at most ten of which reach ``until``."""
    power = 10.0 ** math.floor(math.log10(until / 10)) if until > 0 else 1.0
    return next(power * times for times in (1, 2, 5, 10) if until / (power * times) <= 10)
