"""One exception per layer. Each carries a message code; the text lives in ``messages/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ondam import messages

if TYPE_CHECKING:  # for real it would load numpy, and the command line is to be quick
    from ondam.types import Language


class Foreign(str):
    """A fact in somebody else's words, a server's or a library's: told to whoever asks, never put in a log.

    They may repeat what was said or answered (``ondam.quiet``).
    """

    __slots__ = ()


class OndamError(Exception):
    """Any failure that Ondam can explain to the person who caused or met it.

    ``code`` names an entry in ``messages/``; ``facts`` fill its placeholders. ``exit_code`` is what the
    command line returns (documented in docs/commands.md).
    """

    exit_code = 1

    def __init__(self, code: str, /, **facts: object) -> None:
        super().__init__(code, facts)
        self.code = code
        self.facts = facts

    def message(self, language: Language = "en") -> messages.Message:
        """What happened and what to do next, in the reader's language."""
        return messages.message(self.code, language, **self.facts)

    def __str__(self) -> str:
        return self.message().text


class ConfigError(OndamError):
    """The configuration cannot be used. Raised by ``config``.

    The fact ``problems`` of ``config_problems`` holds every problem found, as ``messages.Phrases``.
    """

    exit_code = 3


class MigrationError(OndamError):
    """What another version of Ondam left cannot be taken over. Raised by ``deploy.migrate``."""

    exit_code = 3


class ServiceError(OndamError):
    """The service cannot be installed, removed or asked. Raised by ``deploy.service``."""


class ControlError(OndamError):
    """The daemon cannot be reached, refused a call, or runs already.

    Raised by ``control`` and, for a second daemon, by ``supervisor.instance``.
    """

    exit_code = 4


class ModelError(OndamError):
    """Weights are missing, broken or unknown, or could not be fetched. Raised by ``models``."""

    exit_code = 5


class EngineError(OndamError):
    """An engine could not be built, started or asked, or did not do what it was asked.

    Raised by ``supervisor`` and ``clients``.
    """

    exit_code = 6


class AudioError(OndamError):
    """A sound device or a sound file cannot be used. Raised by ``audio``."""

    exit_code = 7


class DesktopError(OndamError):
    """The tray cannot be shown: its environment, a display, the session's bus or a panel is missing.

    Raised by ``cli.tray`` and ``deploy.tray``; the tray's own process ends with the same code.
    """

    exit_code = 11


class JournalError(OndamError):
    """A file of turns cannot be read, or a report cannot be made of it. Raised by ``journal``."""


class BundleError(OndamError):
    """A bundle cannot be made, is not whole, is not for this machine, or could not be installed.

    Raised by ``deploy.bundle_*``.
    """

    exit_code = 9
