"""The pieces of an utterance that is longer than what is kept in one: recognized while the user goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ondam.errors import OndamError
from ondam.pipeline.capture import Utterance

log = logging.getLogger(__name__)


@dataclass
class _Piece:
    said: Utterance | None
    """None once its words are known."""
    task: asyncio.Task[str]


class Pieces:
    """Of one turn, in the order they were said. One is recognized at a time."""

    def __init__(self, recognize: Callable[[Utterance], Awaitable[str]], told: Callable[[str], None]) -> None:
        """``told`` is called with the words of each piece."""
        self._recognize = recognize
        self._told = told
        self._pieces: list[_Piece] = []
        self._turn = asyncio.Lock()
        self.seconds = 0.0
        """Length of all of them."""

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, utterance: Utterance) -> None:
        """Begin to recognize one more."""
        self.seconds += utterance.audio.seconds
        self._pieces.append(_Piece(utterance, self._begun(len(self._pieces), utterance)))

    async def words(self, first: int) -> str:
        """Those of the ``first`` so many pieces, once they are known.

        A piece that failed is tried again: its engine may be back. Raises what that raises.
        """
        said = []
        for number, piece in enumerate(self._pieces[:first]):
            if piece.said is not None and piece.task.done():
                piece.task = self._begun(number, piece.said)
            # Whoever no longer wants all of the words leaves the work on this piece to go on.
            said.append(await asyncio.shield(piece.task))
        return " ".join(text for text in said if text)

    def cancel(self) -> None:
        """Nothing of it is wanted any more."""
        for piece in self._pieces:
            piece.task.cancel()

    @property
    def busy(self) -> bool:
        """Some work still runs."""
        return any(not piece.task.done() for piece in self._pieces)

    async def ended(self) -> None:
        """Return when none does."""
        await asyncio.gather(*(piece.task for piece in self._pieces), return_exceptions=True)

    def _begun(self, number: int, utterance: Utterance) -> asyncio.Task[str]:
        task = asyncio.create_task(self._work(number, utterance), name=f"piece {number}")
        task.add_done_callback(_noted)
        return task

    async def _work(self, number: int, utterance: Utterance) -> str:
        async with self._turn:
            text = (await self._recognize(utterance)).strip()
        self._pieces[number].said = None
        self._told(text)
        return text


def _noted(task: asyncio.Task[str]) -> None:
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, OndamError):
        log.warning("a piece of a long utterance: %s", error)  # told when its words are wanted
    else:
        log.error("a piece of a long utterance could not be recognized", exc_info=error)
