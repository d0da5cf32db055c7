"""What the conversation holds: what was asked, and what was really heard of the answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and the part of its answer that was played. Roles alternate by construction."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class History:
    """The latest exchanges, oldest first, never more than ``limit``.

    When one more comes than it may hold, the older half goes at once. What is sent to the language model then
    begins with the same words for many turns, and the model's cache of it holds; forgetting one exchange a
    turn would have all of it computed anew in every turn.
    """

    limit: int
    exchanges: tuple[Exchange, ...] = ()

    def within(self, limit: int) -> History:
        """The latest of them under another limit."""
        return History(limit, self.exchanges[max(0, len(self.exchanges) - limit) :])

    def with_exchange(self, question: str, answer: str) -> History:
        """The history after one more exchange; an answer of which nothing was heard leaves no trace."""
        if not answer.strip():
            return self
        kept = (*self.exchanges, Exchange(question, answer.strip()))
        if len(kept) > self.limit:
            kept = kept[len(kept) - (self.limit + 1) // 2 :]
        return History(self.limit, kept)
