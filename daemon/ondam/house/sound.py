"""The sound's way in and out: microphone and speaker that are open now, and the echo between them."""

from __future__ import annotations

from typing import Literal, Protocol

from ondam.audio import OnFault, is_device, open_microphone, open_speaker
from ondam.audio.alive import Stuck, stuck
from ondam.audio.duplex import Duplex, EchoMode
from ondam.audio.faults import NOTICES
from ondam.audio.microphone import DeviceMicrophone
from ondam.audio.speaker import DeviceSpeaker
from ondam.config import AudioConfig
from ondam.control import wire
from ondam.errors import ControlError
from ondam.house.ears import Ears
from ondam.house.faults import Faults
from ondam.pipeline.ports import Microphone, Speaker
from ondam.supervisor.status import Fault


class Conversation(Protocol):
    """What is asked of a ``Session``: it hears and speaks with what is opened here, and closes it."""

    microphone: Microphone
    speaker: Speaker

    def use_speaker(self, speaker: Speaker) -> None:
        """Speak through another one."""

    def microphone_lost(self) -> None:
        """The microphone went away."""


class Sound:
    """Opens devices as the configuration says, and others while they are used. Their faults are told."""

    def __init__(self, audio: AudioConfig, faults: Faults) -> None:
        self._audio = audio
        self._faults = faults
        self._duplex: Duplex | None = None
        """Takes our own voice out of the microphone; None where no microphone hears our speaker."""
        self._speaker: Speaker | None = None
        self._microphone: Microphone | None = None
        """As it was opened, without what takes our own voice out of it."""
        self._conversation: Conversation | None = None
        self._ears: Ears | None = None

    def configure(self, audio: AudioConfig) -> None:
        """What is opened from now on is so; ``use_microphone`` and ``use_speaker`` for what is open."""
        self._audio = audio

    def attach(self, conversation: Conversation, ears: Ears) -> None:
        """Theirs is what was opened, and what will be."""
        self._conversation, self._ears = conversation, ears

    def open_speaker(self) -> Speaker:
        """The speaker; a device that is gone is waited for. AudioError where it is a file that cannot be."""
        audio = self._audio
        self._speaker = open_speaker(
            audio.speaker, latency_ms=audio.speaker_latency_ms, on_fault=self._on_fault("speaker")
        )
        return self._speaker

    def open_microphone(self) -> Microphone:
        """Likewise the microphone, without the echo of the speaker that is open."""
        audio = self._audio
        microphone = open_microphone(audio.microphone, on_fault=self._on_fault("microphone"))
        self._microphone = microphone
        if self._speaker is None or not (is_device(audio.microphone) and is_device(audio.speaker)):
            return microphone  # a file hears nobody
        if self._duplex is None:
            self._duplex = Duplex(microphone, self._speaker, setting=audio.echo, on_change=self._echo_changed)
        else:
            self._duplex.reopen(microphone)  # it is the room that it knows
        return self._duplex

    def microphone_closed(self) -> None:
        """It was muted: nothing is wrong with what is not there."""
        for what in ("microphone", "echo"):
            self._faults.clear(what)

    async def use_microphone(self, spec: str) -> None:
        """Hear with this one. AudioError where it cannot be opened: then there is none.

        ControlError ``daemon_starting`` before there is a conversation.
        """
        conversation, ears = self._attached()
        if ears.deaf:
            return  # it is opened when it is wanted again
        if isinstance(self._microphone, DeviceMicrophone) and is_device(spec):
            self._microphone.use(spec)
            return
        conversation.microphone_lost()
        self._faults.clear("microphone")
        self._another_room()
        await ears.reopen()

    async def use_speaker(self, spec: str) -> None:
        """Speak through this one; raises likewise, and AudioError leaves the one before."""
        conversation, ears = self._attached()
        before = self._speaker
        if isinstance(before, DeviceSpeaker) and is_device(spec):
            before.use(spec)
            return
        self._faults.clear("speaker")
        conversation.use_speaker(self.open_speaker())
        self._another_room()
        await ears.reopen()
        if before is not None:
            await before.close()

    def full_duplex(self) -> bool:
        """Whether the microphone brings nothing of the answer while that sounds."""
        return self._duplex is None or self._duplex.trusted

    @property
    def echo(self) -> EchoMode | None:
        """What is known of our own voice in the microphone; None where it cannot be in it."""
        return self._duplex.mode if self._duplex else None

    def device(self, which: Literal["microphone", "speaker"]) -> wire.Device:
        """Its name, and how it is."""
        microphone = which == "microphone"
        spec = self._audio.microphone if microphone else self._audio.speaker
        name = spec
        if (conversation := self._conversation) is not None:
            name = conversation.microphone.name if microphone else conversation.speaker.name
        if spec == "none":
            return {"name": name, "state": "none"}
        if microphone and self._ears is not None and self._ears.deaf:
            return {"name": spec, "state": "muted"}
        return {"name": name, "state": "missing" if which in self._faults else "ok"}

    def stuck(self) -> Stuck | None:
        """What of it no longer moves, though nothing is known to be wrong with the devices."""
        conversation = self._conversation
        return None if conversation is None else stuck(conversation.microphone, conversation.speaker)

    def _attached(self) -> tuple[Conversation, Ears]:
        if self._conversation is None or self._ears is None:
            raise ControlError("daemon_starting")
        return self._conversation, self._ears

    def _another_room(self) -> None:
        self._duplex = None
        self._faults.clear("echo")

    def _echo_changed(self, mode: EchoMode) -> None:
        if mode != "half_duplex":
            self._faults.clear("echo")
        elif self._audio.echo != "off":  # else it is what the user wants
            self._faults.begin("echo", Fault("echo_half_duplex", {}))

    def _on_fault(self, which: Literal["microphone", "speaker"]) -> OnFault:
        def tell(code: str | None, /, **facts: object) -> None:
            if code is None:
                self._faults.clear(which)
                return
            notice = code in NOTICES
            self._faults.begin(f"{which}:notice" if notice else which, Fault(code, facts))
            if which == "microphone" and not notice and self._conversation is not None:
                self._conversation.microphone_lost()

        return tell
