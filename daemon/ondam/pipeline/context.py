"""How much of a conversation is sent along: what the language engine's context has room for."""

from __future__ import annotations

from collections.abc import Sequence

from ondam.pipeline.ports import Message, Usage

LATIN_PER_TOKEN = 3.0
"""ASCII characters in a token, at the least that is usual: English has about 4, code and digits about 3."""

OTHER_PER_TOKEN = 0.5
"""Other characters. Hangul has one or two syllables a token where a model knows Korean, and needs two or
three tokens a syllable where it does not (bytes)."""

TOKENS_PER_MESSAGE = 8
"""What a chat template puts around a message: role, begin, end. Between 3 (ChatML, cached pieces) and 8."""

MARGIN = 1.05
"""Over what is known: the same words cost a little more or less in another place."""


def estimate(messages: Sequence[Message]) -> float:
    """Tokens of the messages, judged by their letters: rather too many than too few."""
    total = 0.0
    for message in messages:
        latin = sum(sign.isascii() for sign in message["content"])
        other = len(message["content"]) - latin
        total += TOKENS_PER_MESSAGE + latin / LATIN_PER_TOKEN + other / OTHER_PER_TOKEN
    return total


class Context:
    """What one conversation has learned of its engine's room. Pure; one per conversation.

    A request is the system prompt, exchanges of two messages each, and a question. What does not fit beside
    the answer is left out in blocks, the older half of the exchanges at once, and stays left out: the request
    begins with the same words for many turns, so that the engine's cache of it holds.
    """

    def __init__(self) -> None:
        self._room = 0
        self._scale = 1.0
        """Tokens that the engine counted for each token that was estimated, in the last request."""
        self._dropped: tuple[int, tuple[Message, Message]] | None = None
        """How many exchanges were left out, and the last of them."""

    def fitted(self, messages: Sequence[Message], *, room: int, reserve: int) -> list[Message]:
        """The request with what fits. ``room``: tokens that the engine's context holds, 0 when nobody knows;
        ``reserve``: those kept free for the answer."""
        before = kept = self._without_dropped(messages)
        room = room or self._room
        while room and pairs(kept) and self.tokens(kept) + reserve > room:
            kept = _without(kept, (pairs(kept) + 1) // 2)
        self.leave_out(before, kept)
        return kept

    def shortened(self, messages: Sequence[Message], *, reserve: int) -> list[Message] | None:
        """The request for an engine that had no room for ``messages``: the last exchange at most, or none.

        None when there is nothing to leave out.
        """
        count = pairs(messages)
        if self._room and count > 1:
            last = _without(messages, count - 1)
            if self.tokens(last) + reserve <= self._room:
                return last
        return _without(messages, count) if count else None

    def leave_out(self, before: Sequence[Message], after: Sequence[Message]) -> None:
        """From now on leave out what is in ``before``, a request as it was sent, and not in ``after``."""
        count = pairs(before) - pairs(after)
        if count:
            last = system(before) + 2 * count
            dropped = self._dropped[0] if self._dropped else 0
            self._dropped = (dropped + count, (before[last - 2], before[last - 1]))

    def learn(self, messages: Sequence[Message], usage: Usage) -> None:
        """An answer to ``messages`` told what they cost."""
        if usage.prompt_tokens:
            self._scale = usage.prompt_tokens / estimate(messages)

    def learn_room(self, messages: Sequence[Message], *, room: int, tokens: int) -> None:
        """A refusal told how much the engine holds, and what ``messages`` would have taken; 0: not told."""
        self._room = room or self._room
        if tokens:
            self._scale = tokens / estimate(messages)

    def tokens(self, messages: Sequence[Message]) -> float:
        """What ``messages`` will cost, from what the latest answer counted."""
        return MARGIN * self._scale * estimate(messages)

    def _without_dropped(self, messages: Sequence[Message]) -> list[Message]:
        """What was left out once stays so, wherever the history now begins: it too forgets its oldest."""
        if self._dropped is None:
            return list(messages)
        head = system(messages)
        count, exchange = self._dropped
        # People say the same thing twice: of several equal exchanges it is the one nearest to where it was.
        for number in range(min(count, pairs(messages)), 0, -1):
            end = head + 2 * number
            if (messages[end - 2], messages[end - 1]) == exchange:
                self._dropped = (number, exchange)
                return _without(messages, number)
        self._dropped = None
        return list(messages)


def system(messages: Sequence[Message]) -> int:
    """How many messages stand before the first exchange."""
    return int(bool(messages) and messages[0]["role"] == "system")


def pairs(messages: Sequence[Message]) -> int:
    """How many exchanges are sent along."""
    return (len(messages) - system(messages) - 1) // 2


def _without(messages: Sequence[Message], count: int) -> list[Message]:
    """``messages`` less their first ``count`` exchanges."""
    head = system(messages)
    return [*messages[:head], *messages[head + 2 * count :]]
