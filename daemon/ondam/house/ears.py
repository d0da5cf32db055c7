"""The microphone of a conversation, closed for as long as the mode is "muted"; and the talk button."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ondam.audio.cues import Cue, cue
from ondam.audio.simulated import NoMicrophone
from ondam.control.wire import WantedMode
from ondam.errors import ControlError
from ondam.pipeline.ports import Microphone
from ondam.types import Mode, Samples

log = logging.getLogger(__name__)


class Conversation(Protocol):
    """What is asked of a ``Session``."""

    microphone: Microphone

    @property
    def mode(self) -> Mode:
        """When the microphone counts."""

    @property
    def pressed(self) -> bool:
        """The talk button is held down."""

    def set_mode(self, mode: Mode) -> None:
        """From now on the microphone counts as ``mode`` says."""

    def press(self) -> None:
        """The talk button went down."""

    def release(self) -> None:
        """The talk button was let go."""

    def cue(self, samples: Samples) -> None:
        """Play a short sound."""

    async def run(self) -> None:
        """Listen until the microphone is closed."""

    async def hear(self, microphone: Microphone) -> None:
        """Listen to another microphone until it is closed."""


class Ears:
    """Listens from ``start`` to ``close``. Muted means that there is no stream: the device's light is out."""

    def __init__(
        self,
        conversation: Conversation,
        open_microphone: Callable[[], Microphone],
        *,
        longest_press_s: float,
        cues: bool,
        broke_down: Callable[[BaseException | None], None],
        closed: Callable[[], None] = lambda: None,
        full_duplex: Callable[[], bool] = lambda: False,
    ) -> None:
        """``broke_down`` is called when listening ends though nobody wanted that, ``closed`` when the
        microphone was closed for "muted". Only with ``full_duplex`` does the talk button sound: else its tone
        would cost the first word.
        """
        self._conversation = conversation
        self._open_microphone = open_microphone
        self._longest_press_s = longest_press_s
        self._cues = cues
        self._broke_down = broke_down
        self._tell_closed = closed
        self._full_duplex = full_duplex
        self._hearing: asyncio.Task[None] | None = None
        """None while nobody is to listen: whatever task ends then was meant to."""
        self._switching = asyncio.Lock()
        self._switches: set[asyncio.Task[None]] = set()
        self._wanted: Mode = conversation.mode
        # Begun muted, nobody has said when it may listen: not before somebody presses the button.
        self._unmuted: Mode = "push" if conversation.mode == "muted" else conversation.mode
        self._held: asyncio.TimerHandle | None = None
        """Lets the button go that nobody lets go."""
        self._ended = False

    @property
    def deaf(self) -> bool:
        """There is no stream, because it is muted."""
        return self._conversation.mode == "muted" and isinstance(self._conversation.microphone, NoMicrophone)

    def start(self) -> None:
        """Begin to listen, on the running loop."""
        self._listen(self._conversation.run())

    async def set_mode(self, mode: WantedMode) -> Mode:
        """Returns when it is so: for "muted", when the microphone is closed. The mode in force then.

        "unmuted" is the mode before it was muted. Whoever no longer waits does not undo it. Of several at
        once the last one counts. AudioError where the microphone cannot be opened: it stays muted.
        """
        wanted = self._unmuted if mode == "unmuted" else mode
        if wanted != "muted":
            self._unmuted = wanted
        self._wanted = wanted
        switch = asyncio.create_task(self._switch(), name=f"mode {wanted}")
        self._switches.add(switch)
        switch.add_done_callback(self._switched)
        await asyncio.shield(switch)
        return self._conversation.mode

    def configure(self, *, longest_press_s: float, cues: bool) -> None:
        """Other settings from now on."""
        self._longest_press_s, self._cues = longest_press_s, cues

    async def reopen(self) -> None:
        """Close the microphone and listen to one that is opened anew. While muted there is nothing to do.

        AudioError where it cannot be opened: then there is none.
        """
        async with self._switching:
            if self._ended or self._conversation.mode == "muted":
                return
            await self._hand_over(NoMicrophone())
            await self._hand_over(self._open_microphone())

    def press(self) -> None:
        """The talk button goes down; it is let go after ``longest_press_s`` at the latest.

        ControlError ``listen_muted`` while muted.
        """
        if self._conversation.mode == "muted":
            raise ControlError("listen_muted")
        if self._conversation.pressed:
            return
        self._forget_button()
        self._held = asyncio.get_running_loop().call_later(self._longest_press_s, self._let_go)
        self._conversation.press()
        if self._full_duplex():
            self._cue("pressed")

    def release(self) -> None:
        """The talk button is let go. Harmless when it is not down."""
        self._forget_button()
        if not self._conversation.pressed:
            return
        self._conversation.release()
        if self._full_duplex():
            self._cue("released")

    def toggle(self) -> bool:
        """The other of ``press`` and ``release``; whether the button is down now."""
        if self._conversation.pressed:
            self.release()
        else:
            self.press()
        return self._conversation.pressed

    async def close(self) -> None:
        """Listen no more. The microphone is left to whoever closes the conversation."""
        self._ended = True
        self._forget_button()
        async with self._switching:
            hearing, self._hearing = self._hearing, None
        if hearing is not None:
            hearing.cancel()
            # What broke it has been told when it broke.
            await asyncio.gather(hearing, return_exceptions=True)

    def _switched(self, switch: asyncio.Task[None]) -> None:
        self._switches.discard(switch)
        # Perhaps nobody waits for it any more.
        if not switch.cancelled() and (error := switch.exception()) is not None:
            log.warning("the mode could not be changed: %s", error)

    async def _switch(self) -> None:
        async with self._switching:
            mode, before = self._wanted, self._conversation.mode
            if self._ended or mode == before:
                return
            if mode == "muted":
                # What is being said is dropped first: the end of the sound is no end of an utterance.
                self._conversation.set_mode(mode)
                await self._hand_over(NoMicrophone())
                self._tell_closed()
            else:
                if before == "muted":
                    await self._open()
                self._conversation.set_mode(mode)
            self._cue(mode)

    async def _open(self) -> None:
        try:
            microphone = self._open_microphone()
        except BaseException:  # also a cancelled switch: what is wanted must be what is
            self._wanted = "muted"
            raise
        await self._hand_over(microphone)

    async def _hand_over(self, microphone: Microphone) -> None:
        """Close the microphone before, and listen to this one. There are never two that stay open."""
        hearing, self._hearing = self._hearing, None
        try:
            await self._conversation.microphone.close()
            if hearing is not None:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
        finally:
            self._conversation.microphone = microphone
            self._listen(self._conversation.hear(microphone))

    def _listen(self, listening: Coroutine[Any, Any, None]) -> None:
        self._hearing = asyncio.create_task(listening, name="hearing")
        self._hearing.add_done_callback(self._stopped)

    def _stopped(self, hearing: asyncio.Task[None]) -> None:
        if hearing is self._hearing and not self._ended and not hearing.cancelled():
            self._broke_down(hearing.exception())

    def _cue(self, kind: Cue) -> None:
        if self._cues:
            self._conversation.cue(cue(kind))

    def _forget_button(self) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None

    def _let_go(self) -> None:
        if self._conversation.pressed:
            log.warning("the talk button was held for %g s; it counts as let go", self._longest_press_s)
            self.release()
