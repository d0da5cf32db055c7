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
    """The last ``limit`` exchanges, oldest first."""

    limit: int
    exchanges: tuple[Exchange, ...] = ()

    def with_exchange(self, question: str, answer: str) -> History:
        """The history after one more exchange; an answer of which nothing was heard leaves no trace."""
        if not answer.strip():
            return self
        kept = (*self.exchanges, Exchange(question, answer.strip()))
        return History(self.limit, kept[-self.limit :] if self.limit else ())
