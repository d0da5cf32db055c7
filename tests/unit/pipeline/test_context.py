from __future__ import annotations

import pytest

from ondam.pipeline.context import Context, estimate, pairs
from ondam.pipeline.ports import Message, Usage


def message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def request(asked: str, question: str = "?", *, length: int = 300) -> list[Message]:
    """A system prompt, an exchange of 2 x ``length`` characters for each letter, a question."""
    made = [message("system", "s" * length)]
    for letter in asked:
        made += [message("user", letter * length), message("assistant", letter.upper() * length)]
    return [*made, message("user", question * length)]


def sent(messages: list[Message]) -> str:
    return "".join(m["content"][0] for m in messages)


def test_three_latin_letters_or_half_a_syllable_are_a_token_and_each_message_costs_eight() -> None:
    assert estimate([message("user", "abcdef")]) == 8 + 2
    assert estimate([message("user", "안녕"), message("user", "")]) == 8 + 4 + 8


def test_without_a_known_room_all_is_sent() -> None:
    assert Context().fitted(request("abcdef"), room=0, reserve=64) == request("abcdef")


def test_what_does_not_fit_beside_the_answer_goes_in_blocks_oldest_first_and_the_system_prompt_stays() -> (
    None
):
    # Each message is 108 tokens, 113.4 with the margin; six exchanges are 14 messages, 1587.6 and 100 more.
    context = Context()
    assert sent(context.fitted(request("abcdef"), room=1688, reserve=100)) == "saAbBcCdDeEfF?"
    assert sent(context.fitted(request("abcdef"), room=1687, reserve=100)) == "sdDeEfF?"
    # 8 messages are 907: half of three, rounded up, goes too, and so on down to the question alone.
    assert sent(Context().fitted(request("abcdef"), room=900, reserve=100)) == "sfF?"
    assert sent(Context().fitted(request("abcdef"), room=300, reserve=100)) == "s?"


def test_what_was_left_out_stays_so_and_the_beginning_is_the_same_until_the_next_block() -> None:
    context = Context()
    history, begins = "", []
    for letter in "abcdefghij":
        begins.append(sent(context.fitted(request(history, letter), room=1100, reserve=100))[:2])
        history += letter
    # 8 messages fit: the 4th exchange pushes two out.
    assert begins == ["sa", "sa", "sa", "sa", "sc", "sc", "se", "se", "sg", "sg"]


def test_a_history_that_forgets_its_own_oldest_is_followed() -> None:
    context = Context()
    assert sent(context.fitted(request("abcdef"), room=1500, reserve=100)) == "sdDeEfF?"
    assert sent(context.fitted(request("bcdef", "g"), room=1500, reserve=100)) == "sdDeEfFg"
    assert sent(context.fitted(request("efg", "h"), room=1500, reserve=100)) == "seEfFgGh"
    assert sent(context.fitted(request("", "i"), room=1500, reserve=100)) == "si"


def test_of_equal_exchanges_the_one_that_was_left_out_is_found() -> None:
    context = Context()
    assert sent(context.fitted(request("aaaaaa"), room=1500, reserve=100)) == "saAaAaA?"
    assert sent(context.fitted(request("aaaaaaa"), room=1500, reserve=100)) == "saAaAaAaA?"


def test_what_the_engine_counted_replaces_the_estimate() -> None:
    context = Context()
    # 14 messages cost 700 tokens in truth, 50 each, and not 108.
    context.learn(request("abcdef"), Usage(prompt_tokens=700))
    assert context.tokens(request("abcdef")) == pytest.approx(735)
    assert pairs(context.fitted(request("abcdef"), room=900, reserve=100)) == 6
    context.learn(request("abcdef"), Usage(prompt_tokens=1400))
    assert pairs(context.fitted(request("abcdef"), room=900, reserve=100)) == 1


def test_an_engine_that_had_no_room_is_sent_the_last_exchange_where_it_is_known_to_fit() -> None:
    context = Context()
    context.learn_room(request("abc"), room=500, tokens=800)
    shorter = context.shortened(request("abc"), reserve=100)
    assert shorter is not None
    assert sent(shorter) == "s?"  # 4 messages of 100 are 420 with the margin, and leave no room for 100
    shorter = context.shortened(request("abc"), reserve=60)
    assert shorter is not None
    assert sent(shorter) == "scC?"
    context.leave_out(request("abc"), shorter)
    assert sent(context.fitted(request("abc", "d"), room=0, reserve=50)) == "scCd"


def test_an_engine_of_which_nothing_is_known_is_sent_the_question_alone_and_without_history_nothing() -> None:
    shorter = Context().shortened(request("abc"), reserve=50)
    assert shorter is not None
    assert sent(shorter) == "s?"
    assert Context().shortened(request(""), reserve=50) is None
