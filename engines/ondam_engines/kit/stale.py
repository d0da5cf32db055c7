"""A socket file that outlived its process. Standard library only: engines without Wyoming use it too."""

from __future__ import annotations

import socket
from pathlib import Path

ANSWER_S = 1.0
"""A living server's kernel queue takes a connection at once, whatever the process does."""


def clear_stale(path: Path) -> None:
    """Remove the socket at ``path`` if nobody listens on it. Raises OSError when somebody does."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(ANSWER_S)
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise OSError(f"another process listens on {path}")
