"""Is it meant for us? By mode, name, and what people say while they listen. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ondam.speech.acknowledgement import acknowledges, dismisses, stops
from ondam.speech.address import addressed
from ondam.types import Language, Mode


@dataclass(frozen=True, slots=True)
class Attention:
    """When a voice counts, and which words do."""

    mode: Mode = "open"
    names: tuple[str, ...] = ()
    language: Language = "en"
    called_ms: float = 8000.0
    """What is said within this time of a bare call needs no name."""

    @property
    def hears(self) -> bool:
        """Whether a voice alone opens an utterance."""
        return self.mode in {"open", "name"}

    @property
    def picky(self) -> bool:
        """Whether a voice is no reason yet to stop talking: it may be meant for somebody else."""
        return self.mode == "name"

    def question(self, words: str, *, to_us: bool) -> str | None:
        """What of ``words`` is meant for us: "" for a bare call, None where nothing is.

        ``to_us``: it is certain without a name, by a button or a call just before.
        """
        words = words.strip()
        if not words:
            return None
        if self.mode != "name" or to_us:
            return words
        return addressed(words, self.names, self.language)

    def interrupts(self, words: str) -> bool:
        """Whether ``words``, said over an answer, want it to stop. A listener's "mhm" does not."""
        return not acknowledges(words)

    def dismisses(self, words: str) -> bool:
        """Whether ``words``, said over an answer, want silence and nothing else."""
        return dismisses(self._without_name(words))

    def stops(self, words: str) -> bool:
        """Whether ``words``, said right after a question, take that back and want silence."""
        return stops(self._without_name(words)) and not _asks(words)

    def listens(self, words: str) -> bool:
        """Whether ``words``, said right after a question, only show that its answer is listened to."""
        return acknowledges(words) and not _asks(words)

    def _without_name(self, words: str) -> str:
        return addressed(words, self.names, self.language) or words


def _asks(words: str) -> bool:
    """Whether ``words`` are the end of a question ("그거… 됐어?", "when does it… stop?")."""
    return words.rstrip().endswith(("?", "？"))


OPEN = Attention()
"""Every voice counts."""
