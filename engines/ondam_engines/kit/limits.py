"""What a client may ask for, and how it is told that it asked for too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Code = Literal["bad_request", "too_long", "unsupported_language", "failed"]
"""What an ``error`` event carries as its code."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server. Every queue, frame and answer has one."""

    line_bytes: int = 2**18
    """Of the JSON line that opens a frame. asyncio's own 64 KiB is too short for a long list of names."""
    data_bytes: int = 2**18
    """Of the JSON block that may follow it."""
    payload_bytes: int = 2**20
    """Of one audio chunk: 32 s at 16 kHz. Longer audio comes in several."""
    audio_s: float = 600.0
    """Of one request; twice the longest utterance the daemon closes by itself."""
    held_bytes: int = 2**27
    """Of audio that waits for its end or its turn, all clients together."""
    text_chars: int = 2_000
    """Of one synthesis. The daemon asks clause by clause; this is about two minutes of speech."""
    names: int = 200
    """Hotwords in one request."""
    name_chars: int = 100
    """Of one hotword."""
    answer_bytes: int = 2**26
    """Of samples kept for a client that reads more slowly than the engine computes."""
    queue: int = 16
    """Requests that wait for the worker."""
    connections: int = 64
    """Open at once. One more, and the one that has been idle the longest is closed."""
    stall_s: float = 30.0
    """A client that is in the middle of a request, or has an answer to read, and does nothing for so long."""
    linger_s: float = 1.0
    """After an error, input is thrown away for so long, so that the client gets to read the error."""


LIMITS = Limits()


class RequestError(Exception):
    """A request that cannot be answered. Becomes an ``error`` event; the connection is closed after it."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(code, text)
        self.code: Code = code
        self.text = text
