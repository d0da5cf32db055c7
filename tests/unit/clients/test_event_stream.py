from __future__ import annotations

import pytest

from ondam.clients.event_stream import LONGEST_EVENT, EventStream

ANSWER = "무엇을 도와드릴까요? 🙂"


def events(*pieces: bytes) -> list[str]:
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)] + stream.end()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_b10_a_cut_at_any_byte_changes_nothing(line_end: str) -> None:
    body = f": hello\n\ndata: {ANSWER}\n\nid: 7\ndata:{ANSWER}\n\n".replace("\n", line_end).encode()
    for at in range(len(body) + 1):
        assert events(body[:at], body[at:]) == [ANSWER, ANSWER]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_b10_bytes_one_by_one_change_nothing(line_end: str) -> None:
    body = f"data: {ANSWER}\n\n: ping\n\ndata: 2\n\n".replace("\n", line_end).encode()
    assert events(*(body[at : at + 1] for at in range(len(body)))) == [ANSWER, "2"]


def test_an_event_is_told_as_soon_as_its_blank_line_is_there() -> None:
    for line_end in (b"\n", b"\r\n", b"\r"):
        stream = EventStream()
        assert stream.feed(b"data: 1" + 2 * line_end) == ["1"]


def test_b10_the_last_event_needs_no_blank_line() -> None:
    assert events(b"data: 1\n\ndata: 2\n") == ["1", "2"]
    assert events(b"data: 1\n\ndata: 2") == ["1", "2"]


def test_comments_and_other_fields_are_ignored() -> None:
    assert events(b":\n\n: keep-alive\n\nevent: x\nretry: 3\nid: 1\n\ndatum: 4\n\n") == []


def test_empty_data_is_an_event_too() -> None:
    assert events(b"data\n\ndata:\n\ndata: \n\n") == ["", "", ""]


def test_only_one_space_after_the_colon_is_eaten() -> None:
    assert events(b"data:  two\n\ndata:none\n\n") == [" two", "none"]


def test_several_data_lines_are_one_event() -> None:
    assert events(b"data: a\ndata: b\n\n") == ["a\nb"]


def test_a_byte_order_mark_is_ignored() -> None:
    assert events(b"\xef\xbb\xbfdata: 1\n\n") == ["1"]


def test_a_line_that_never_ends_is_refused() -> None:
    stream = EventStream()
    with pytest.raises(ValueError, match="over"):
        for _ in range(LONGEST_EVENT // 65536 + 1):
            stream.feed(b"x" * 65536)


def test_an_event_that_never_ends_is_refused() -> None:
    stream = EventStream()
    with pytest.raises(ValueError, match="over"):
        for _ in range(LONGEST_EVENT // 65000 + 1):
            stream.feed(b"data: " + b"x" * 65000 + b"\n")


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        events(b"data: \xff\n\n")
