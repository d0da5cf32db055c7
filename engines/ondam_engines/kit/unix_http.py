"""One HTTP request over a Unix socket, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path


class Connection(http.client.HTTPConnection):
    """HTTP to whoever listens on ``path``."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of the host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(
    path: Path,
    method: str,
    route: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
) -> tuple[int, bytes]:
    """Status and body of the answer; ``body`` goes as JSON.

    Raises OSError (also where nobody listens, or nothing comes in time) and http.client.HTTPException.
    """
    sent = dict(headers or {})
    if body is not None:
        sent["Content-Type"] = "application/json"
    connection = Connection(path, timeout_s)
    try:
        connection.request(method, route, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
