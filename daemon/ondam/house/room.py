"""The conversation at the microphone, from the daemon's start to its end: its ears, and who looks on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from ondam.audio import NoMicrophone
from ondam.config import Config
from ondam.control import wire
from ondam.dialog.attention import Attention
from ondam.errors import AudioError, ControlError
from ondam.house.ears import Ears
from ondam.house.following import Following
from ondam.house.sessions import Sessions
from ondam.house.sound import Sound
from ondam.house.switchboard import STAGES
from ondam.session import Session
from ondam.supervisor.fleet import Fleet
from ondam.types import Mode

log = logging.getLogger(__name__)


class Room:
    """Before ``start`` nobody is in it, and whoever wants something of it is told so."""

    def __init__(
        self,
        config: Config,
        *,
        sound: Sound,
        sessions: Sessions,
        fleet: Fleet,
        publish: Callable[[wire.Event], None],
        broke_down: Callable[[], None],
    ) -> None:
        """``broke_down`` is called when listening ends though nobody wanted that."""
        self._config = config
        self._sound = sound
        self._sessions = sessions
        self._fleet = fleet
        self._publish = publish
        self._broke_down = broke_down
        self.name = sessions.new_name()
        """The conversation's, also before it begins: whoever looks on knows it by that."""
        self._told: wire.State | None = None
        """The state that everybody was told last."""
        self.session: Session | None = None
        """The conversation; None before ``start``."""
        self._ears: Ears | None = None
        self._following: Following | None = None
        self._looked_on = False

    def start(self) -> None:
        """Open the devices and begin to listen. Raises AudioError where one is a file that cannot be."""
        sound, listen = self._sound, self._config.listen
        speaker = sound.open_speaker()
        session = self.session = self._sessions.begin(
            microphone=NoMicrophone() if listen.mode == "muted" else sound.open_microphone(),
            speaker=speaker,
            attention=Attention(mode=listen.mode, names=listen.names, language=self._config.spoken_language),
            full_duplex=sound.full_duplex,
            name=self.name,
            publish=self._said,
        )
        ears = self._ears = Ears(
            session,
            sound.open_microphone,
            longest_press_s=self._config.detect.max_utterance_s,
            cues=listen.cues,
            broke_down=self._hearing_broke_down,
            closed=sound.microphone_closed,
            full_duplex=sound.full_duplex,
        )
        sound.attach(session, ears)
        ears.start()
        self._following = Following(session, self._publish)
        self._following.want(self._looked_on)
        self.tell_state()

    async def close(self) -> None:
        """Fall silent, and let go of the devices."""
        if self._following is not None:
            await self._following.close()
        if self._ears is not None:
            await self._ears.close()
        if self.session is not None:
            await self._sessions.end(self.session)

    def configure(self, config: Config) -> None:
        """Other settings from now on; devices are exchanged by ``sound``."""
        self._config = config
        if self._ears is not None:
            self._ears.configure(longest_press_s=config.detect.max_utterance_s, cues=config.listen.cues)
        if self.session is not None:
            self.session.configure(config, config.spoken_language)

    def follow(self, anybody: bool) -> None:
        """Whether anybody looks on, now or once it has begun."""
        self._looked_on = anybody
        if self._following is not None:
            self._following.want(anybody)

    def newcomer(self) -> None:
        """Somebody else looks on: they are to be told all of the running turn."""
        if self._following is not None:
            self._following.newcomer()

    @property
    def mode(self) -> Mode:
        """When the microphone counts, or will."""
        return self.session.mode if self.session else self._config.listen.mode

    @property
    def state(self) -> wire.State:
        """What it is doing, or why it cannot: engines that are changed, start, or are gone."""
        session, fleet = self.session, self._fleet
        if session is not None and session.phase != "listening":
            return cast(wire.State, session.phase)
        if session is not None and fleet.crew.switching:
            return "switching"
        if session is None or any(engine.state in {"starting", "loading"} for engine in fleet.status()):
            return "starting"
        if any(fleet.engine(stage) is None for stage in STAGES):
            return "fault"
        return "listening"

    def tell_state(self) -> None:
        """To everybody, as an event."""
        self._told = self.state
        self._publish({"type": "state", "session": self.name, "state": self._told})

    def engines_changed(self) -> None:
        """An engine came or went: told where that changes what can be done."""
        if self.session is not None and self.state != self._told:
            self.tell_state()

    def _said(self, event: wire.Event) -> None:
        """By the conversation, which knows nothing of engines that are gone: "listening" may be no more than
        that it waits."""
        if event["type"] == "state":
            self.tell_state()
        else:
            self._publish(event)

    def conversation(self) -> Session:
        """Raises ControlError ``daemon_starting``."""
        if self.session is None:
            raise ControlError("daemon_starting")
        return self.session

    def ears(self) -> Ears:
        """Likewise."""
        if self._ears is None:
            raise ControlError("daemon_starting")
        return self._ears

    def listening_ears(self) -> Ears:
        """Raises what a person needs to know before speaking: it is muted, or there is no microphone.

        ControlError ``daemon_starting`` and ``listen_muted``, AudioError ``no_microphone_now``.
        """
        ears = self.ears()
        if self.conversation().mode == "muted":
            raise ControlError("listen_muted")
        device = self._sound.device("microphone")
        if device["state"] in {"none", "missing"}:
            raise AudioError("no_microphone_now", name=device["name"])
        return ears

    def _hearing_broke_down(self, error: BaseException | None) -> None:
        log.error("the conversation at the microphone broke down", exc_info=error)
        self._broke_down()
