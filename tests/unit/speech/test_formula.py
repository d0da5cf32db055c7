"""Formulas in an answer are said; money, which is written with the same sign, stays money."""

from __future__ import annotations

import pytest

from ondam.speech.answer import spoken
from ondam.speech.filters import SpokenFilter
from ondam.types import Language


def filtered(text: str, size: int) -> str:
    made = SpokenFilter("en")
    return "".join(made.feed(text[i : i + size]) for i in range(0, len(text), size)) + made.finish()


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (r"The area is $x^2$.", "The area is x²."),
        (r"Add $\frac{1}{2}$ cup.", "Add 1/2 cup."),
        (r"about $2\frac{1}{2}$ cups", "about 2 1/2 cups"),
        (r"\(x^2 + y^2 = z^2\)", "x² + y² = z²"),
        (r"$$E = mc^2$$", "E = mc²"),
        ("$$\nE = mc^2\n$$", "E = mc²"),
        (r"\[ \frac{x}{2} = \sqrt{2} \]", "x ÷ 2 = √2"),
        (r"$5 \times 3 = 15$", "5 × 3 = 15"),
        (r"$90^\circ$ and $50\%$", "90° and 50%"),
        (r"$10^{-3}\ \text{m}$", "10^-3 m"),
        (r"$\alpha_1 \leq \pi$", "alpha 1 ≤ π"),
        ("$x$ and $y$", "x and y"),
        ("It costs $5 and $10.", "It costs $5 and $10."),
        ("from $5-$10, US$5=HK$39", "from $5-$10, US$5=HK$39"),
        ("set $PATH now", "set $PATH now"),
        ("set $A to $5", "set $A to $5"),
        ("a $ b $ c $", "a $ b $ c $"),
        ("$x with no end\nand more", "$x with no end\nand more"),
        ("$" + "x" * 300 + "$", "$" + "x" * 300 + "$"),
    ],
)
def test_a_formula_becomes_text_the_same_for_every_chunking(written: str, plain: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        assert filtered(written, size) == plain


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("ko", r"반지름이 r이면 넓이는 $\pi r^2$입니다.", "반지름이 알이면 넓이는 파이 알 제곱입니다."),
        ("ko", r"물은 $\frac{1}{2}$ 컵 넣으세요.", "물은 이분의 일 컵 넣으세요."),
        ("ko", r"$5 \times 3 = 15$", "오 곱하기 삼은 십오"),
        ("en", r"Add $\frac{1}{2}$ cup.", "Add one half cup."),
        ("en", r"\(a^2 + b^2 = c^2\)", "a squared plus b squared equals c squared"),
        ("en", r"The root is $\sqrt{2}$.", "The root is the square root of two."),
        ("en", "It costs $5 and $10.", "It costs five dollars and ten dollars."),
    ],
)
def test_a_formula_is_said(language: Language, written: str, said: str) -> None:
    assert spoken(written, language).spoken == said


def test_money_does_not_wait_for_a_closing_dollar() -> None:
    made = SpokenFilter("en")
    assert made.feed("It costs $5 a") == "It costs $5 a"


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_line_break_after_money_is_one(size: int) -> None:
    assert filtered("Price: $5\n- milk\n", size).split("\n")[1].strip() == "milk"
    assert "code" not in filtered("Price: $5\n```\ncode\n```\n", size)
