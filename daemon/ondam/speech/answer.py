"""An answer on its way to a voice: filter, clauses and reading in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ondam.speech.clauses import ClauseCutter, ClauseLengths
from ondam.speech.filters import SpokenFilter, speakable
from ondam.speech.reading import reading
from ondam.types import Language


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of an answer. ``written`` is for eyes and history, ``spoken`` is given to the voice."""

    written: str
    spoken: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a voice is given for a whole text: all of it, and clause by clause."""

    spoken: str
    clauses: list[str]


class ClauseStream:
    """Tokens in, speakable clauses out. One per answer, or ``finish`` between answers."""

    def __init__(
        self, language: Language, lengths: ClauseLengths | None = None, *, reasoning_first: bool = False
    ) -> None:
        self._language: Language = language
        self._filter = SpokenFilter(language, reasoning_first=reasoning_first)
        self._cutter = ClauseCutter(lengths or ClauseLengths())

    @property
    def retractions(self) -> int:
        """Grows when all clauses returned before turn out to have been reasoning: drop the unspoken ones."""
        return self._filter.retractions

    @property
    def reasoned(self) -> bool:
        """Whether reasoning was left out so far."""
        return self._filter.reasoned

    def feed(self, chunk: str) -> list[Clause]:
        """The clauses that ``chunk`` completes."""
        before = self.retractions
        text = self._filter.feed(chunk)
        if self.retractions != before:
            self._cutter.clear()
        return self._read(self._cutter.feed(text))

    def flush(self) -> list[Clause]:
        """A whole sentence that waits for proof, when the stream has been silent for a while."""
        return self._read(self._cutter.flush())

    def finish(self) -> list[Clause]:
        """The rest. When neither this nor any ``feed`` returned a clause, there is nothing to say."""
        return self._read([*self._cutter.feed(self._filter.finish()), *self._cutter.finish()])

    def _read(self, texts: Iterable[str]) -> list[Clause]:
        clauses = (Clause(text, reading(text, self._language)) for text in texts if speakable(text))
        return [clause for clause in clauses if clause.spoken]


def spoken(text: str, language: Language) -> Spoken:
    """What a voice would be given for ``text``, as if it were an answer."""
    stream = ClauseStream(language)
    clauses = [clause.spoken for clause in (*stream.feed(text), *stream.finish())]
    return Spoken(" ".join(clauses), clauses)


def warm_up(language: Language) -> None:
    """Load what the first clause would otherwise wait for: libraries, tables, patterns (about 0.2 s)."""
    spoken(
        "Dr. Kim v1.0.2 3개 1,250원 010-1234-5678 110-234-567890 5kg 50% 2026-11-29 9:30 a.m. $5", language
    )
