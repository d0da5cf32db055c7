"""Tells the service manager how the daemon is: states while models load, readiness, that it is still alive.

The protocol is sd_notify(3): one datagram of ``NAME=value`` lines to the socket in ``NOTIFY_SOCKET``. Own
lines instead of a library: see docs/decisions/service.md.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Self

log = logging.getLogger(__name__)

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@dataclass(frozen=True, slots=True)
class Manager:
    """systemd, or whoever listens at ``address``. ``watchdog_s``: it ends us where it hears nothing for so
    long; None: it does not."""

    address: str
    watchdog_s: float | None = None

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Self | None:
        """The one that started us, or None. Its variables are taken away: they are not for engines, which
        would speak for us."""
        told = {name: environ.pop(name, "") for name in VARIABLES}
        address = told["NOTIFY_SOCKET"]
        if not address.startswith(("/", "@")):
            return None
        ours = told["WATCHDOG_PID"] in {"", str(os.getpid())}
        every = told["WATCHDOG_USEC"]
        return cls(address, int(every) / 1e6 if ours and every.isdecimal() and int(every) else None)

    def tell(self, **states: str | int) -> None:
        """``READY=1, STATUS="…"``. Never waits and never raises: whoever does not listen misses it."""
        message = "\n".join(f"{name}={_line(value)}" for name, value in states.items())
        # "@": an abstract address, whose first byte is a zero.
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
                out.sendto(message.encode("utf-8", "replace"), address)
        except OSError as error:
            log.debug("the service manager was not told %s: %s", message, error)


def _line(value: str | int) -> str:
    return " ".join(str(value).split())
