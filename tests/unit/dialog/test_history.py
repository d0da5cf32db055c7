from __future__ import annotations

from ondam.dialog.history import History


def questions(history: History) -> str:
    return "".join(exchange.question for exchange in history.exchanges)


def told(limit: int, asked: str) -> list[str]:
    history, seen = History(limit), []
    for question in asked:
        history = history.with_exchange(question, "yes")
        seen.append(questions(history))
    return seen


def test_the_older_half_is_forgotten_at_once_so_that_the_beginning_stays_for_many_turns() -> None:
    assert told(4, "abcdefgh") == ["a", "ab", "abc", "abcd", "de", "def", "defg", "gh"]


def test_a_history_of_one_holds_the_last_exchange_and_one_of_none_holds_nothing() -> None:
    assert told(1, "abc") == ["a", "b", "c"]
    assert told(0, "ab") == ["", ""]
    assert told(3, "abcdef") == ["a", "ab", "abc", "cd", "cde", "ef"]


def test_an_answer_of_which_nothing_was_heard_leaves_no_trace() -> None:
    history = History(4).with_exchange("a", " yes ")
    assert history.with_exchange("b", "  ") is history
    assert history.exchanges[0].answer == "yes"
