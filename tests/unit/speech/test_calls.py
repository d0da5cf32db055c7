"""Calls of tools in words."""

from __future__ import annotations

import pytest

from ondam.speech.calls import DECIDED, CallFilter


def filtered(text: str, size: int) -> tuple[str, str | None]:
    calls = CallFilter()
    spoken = "".join(calls.feed(text[at : at + size]) for at in range(0, len(text), size))
    return spoken + calls.finish(), calls.called


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<tool_call>\n{"name": "book_room", "arguments": {"nights": 2}}\n</tool_call>', "book_room"),
        ('[TOOL_CALLS] [{"name": "book_room", "arguments": {}}]', "book_room"),
        ("<function=book_room>{}</function>", "book_room"),
        ('<|python_tag|>{"name": "book_room"}', "book_room"),
        ("<|tool_call_start|>[book_room(nights=2)]<|tool_call_end|>", "?"),
        (' {"name": "book_room", "parameters": {"nights": 2}}', "book_room"),
        ('```json\n[{"name": "book_room"}]\n```', "book_room"),
        ('{"type": "function", "function": {"name": "book_room"}}', "book_room"),
        ('<tool_call>{"na', "?"),
    ],
)
def test_a_call_is_never_spoken_and_has_its_name(text: str, name: str, size: int) -> None:
    assert filtered(text, size) == ("", name)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "It is three.",
        "[laughs] It is three.",
        "<think>Hm.</think>It is three.",
        "{",
        "",
        "  네, 알겠습니다.",
        '{"weather": "fine"}',
        "```python\nprint(1)\n```",
        '"name": "book_room"',
        "<" + "x" * 100,
    ],
)
def test_everything_else_goes_through_as_it_is(text: str, size: int) -> None:
    assert filtered(text, size) == (text, None)


def test_words_that_begin_like_no_call_are_never_kept_waiting() -> None:
    calls = CallFilter()
    assert CallFilter().feed("<th") == "<th"
    assert calls.feed("I") == "I"
    assert calls.feed(' say <tool_call>{"name"') == ' say <tool_call>{"name"', "and not in the middle"


def test_what_may_become_a_call_is_kept_back_for_a_moment() -> None:
    calls = CallFilter()
    assert calls.feed("<to") == ""
    assert calls.feed("ol> It") == "<tool> It"
    calls = CallFilter()
    assert calls.feed("{" + " " * (DECIDED - 2)) == ""
    assert calls.feed(" ") == "{" + " " * (DECIDED - 1)


def test_an_endless_call_takes_no_memory() -> None:
    calls = CallFilter()
    for _ in range(10_000):
        assert calls.feed('{"name": "book_room", ' if calls.called is None else "x" * 100) == ""
    assert len(calls._held) <= 1000
    assert calls.called == "book_room"
