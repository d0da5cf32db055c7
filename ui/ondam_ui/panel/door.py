"""Who may come in: whoever was told the address, from a page of ours, in a browser that means this machine.

Three things are open to others on this machine or in this browser, and each is closed:

* Another user of the machine can connect to the port. Without the token, which only the printed address holds
  (behind the ``#``, where it is in no request and in no log), nothing is answered but the empty page.
* A page from elsewhere can make the browser send requests here, also under a name of its own that leads to
  127.0.0.1 (DNS rebinding). Requests under a name that is not this machine's, or from a page that is not
  ours, are refused, whatever cookie they bring.
* A cookie is sent to every port of its host. Ours holds for one path that cannot be guessed, so that what
  another user serves on another port is never given it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

NAMES = frozenset({"127.0.0.1", "localhost"})
"""What this machine is called in a browser on it, or at the near end of an ssh tunnel."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer: nothing is loaded from elsewhere, and nobody puts the page into theirs."""


@dataclass(frozen=True, slots=True)
class Door:
    """The secrets of one start; nothing of them is written down."""

    path: str = field(default_factory=lambda: f"/{secrets.token_hex(8)}/")
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """What the token is exchanged for: the cookie's value."""

    def address(self, port: int) -> str:
        """What a browser opens."""
        return f"http://127.0.0.1:{port}{self.path}#token={self.token}"

    def opens(self, token: object) -> bool:
        """Whether this is the token; in the same time however much of it is right."""
        return isinstance(token, str) and _same(token, self.token)

    def knows(self, cookie: str | None) -> bool:
        """Whether this is the cookie that was given for the token."""
        return cookie is not None and _same(cookie, self.session)


def our_host(host: str) -> bool:
    """Whether the browser means this machine. Any port: that of a tunnel's near end may be another."""
    name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
    return name in NAMES and (not port or (port.isascii() and port.isdigit()))


def our_page(headers: Mapping[str, str], *, changes: bool) -> bool:
    """Whether it was a page of ours that asked, as the browser says.

    ``changes``: something happens, or a WebSocket is opened; then the browser must have said so. Another port
    of this machine is another's page, though a browser calls it the same site.
    """
    origin = headers.get("Origin")
    if origin is not None:
        return origin == f"http://{headers.get('Host', '')}"
    # Browsers leave Origin out where a page only reads from its own server; they say so in another way.
    return not changes and headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())
