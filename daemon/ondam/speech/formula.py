"""Simple TeX as plain text: ``\\frac{1}{2}`` is 1/2, ``x^2`` is x². Pure."""

from __future__ import annotations

import re

_SIGNS = {
    "times": "×",
    "cdot": "×",
    "div": "÷",
    "pm": "±",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "approx": "≈",
    "pi": "π ",
    "circ": "°",
    "to": "→",
    "rightarrow": "→",
    "Rightarrow": "→",
    "infty": "∞",
    "left": "",
    "right": "",
    "displaystyle": "",
    "quad": " ",
    "qquad": " ",
}
_PART = re.compile(r"\\[dt]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)\s*(\d))")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_WORDS = re.compile(r"\\(?:text|mathrm|mathbf|mathit|operatorname|boxed)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^\s*\{?\\circ\}?")
_POWER = re.compile(r"\^\s*(?:\{([^{}]*)\}|(\w))")
_COMMAND = re.compile(r"\\([A-Za-z]+)\s?")
_SPACING = re.compile(r"\\[,;:! ]|~")
_DIGITS = re.compile(r"\d+")
_GAPS = re.compile(r"\s+")
_DEEPEST = 4
"""Parts within parts; a formula that goes deeper is none for the ear."""


def plain_formula(tex: str) -> str:
    """``tex``, what stands between its marks, in one line. A command without a sign leaves its name."""
    text = _DEGREES.sub("°", _SPACING.sub(" ", tex.replace("\\%", "%").replace("\\$", "$")))
    for _ in range(_DEEPEST):
        before = text
        text = _PART.sub(_part, _ROOT.sub(_root, _WORDS.sub(r"\1", text)))
        text = _POWER.sub(_power, text)
        if text == before:
            break
    text = _COMMAND.sub(_command, text)
    text = text.replace("\\\\", " ").translate({ord(sign): "" for sign in "{}\\_&"})
    return _GAPS.sub(" ", text).strip()


def _part(found: re.Match[str]) -> str:
    above, below = (found[1], found[2]) if found[1] is not None else (found[3], found[4])
    if _DIGITS.fullmatch(above.strip()) and _DIGITS.fullmatch(below.strip()):
        before = found.string[: found.start()][-1:]
        return f"{' ' if before.isdigit() else ''}{above.strip()}/{below.strip()}"
    return f"{above} ÷ {below}"


def _root(found: re.Match[str]) -> str:
    return f"√{found[1]}"


def _power(found: re.Match[str]) -> str:
    power = found[1] if found[1] is not None else found[2]
    return {"2": "²", "3": "³"}.get(power.strip(), f"^{power.strip()}")


def _command(found: re.Match[str]) -> str:
    sign = _SIGNS.get(found[1])
    return f"{found[1]} " if sign is None else f" {sign} " if sign in ("×", "÷", "≤", "≥") else sign
