"""From a model's stream to text that may be spoken: reasoning out first, then markup, then the clauses."""

from __future__ import annotations

from ondam.speech.markup import MarkupFilter
from ondam.speech.thinking import ThinkingFilter
from ondam.types import Language


class SpokenFilter:
    """What is left of an answer for the ear. Incremental; the output is the same for every chunking.

    ``reasoning_first``: the chat template has opened a reasoning block that the stream only closes.
    After ``finish`` it is as new: nothing left open in one answer touches the next.
    """

    def __init__(self, language: Language, *, reasoning_first: bool = False) -> None:
        self._thinking = ThinkingFilter(opened=reasoning_first)
        self._markup = MarkupFilter(language)

    @property
    def retractions(self) -> int:
        """How often a closing reasoning tag came that nothing had opened.

        When it grows during ``feed``, all text returned before that call was reasoning: drop what of it
        has not been spoken yet (``ClauseCutter.clear``). Only what that call returned counts.
        """
        return self._thinking.retractions

    @property
    def reasoned(self) -> bool:
        """Whether reasoning was left out so far."""
        return self._thinking.reasoned

    def feed(self, chunk: str) -> str:
        """The text that ``chunk`` completes; empty while a tag, link or table row may still be open."""
        before = self.retractions
        text = self._thinking.feed(chunk)
        if self.retractions != before:
            self._markup.retract()
        return self._markup.feed(text)

    def finish(self) -> str:
        """The rest, at the end of the stream."""
        return self._markup.feed(self._thinking.finish()) + self._markup.finish()


def speakable(text: str) -> bool:
    """Whether a voice could say anything of ``text``: a letter or a digit, of any script."""
    return any(sign.isalnum() for sign in text)
