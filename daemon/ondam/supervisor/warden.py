"""A small process that outlives the daemon by a moment, to end what ``kill -9`` left.

The kernel ends the engines (``leash``), not what they started; on macOS not even the engines. The warden
waits for the pipe from the daemon to break, which it does however the daemon died, and then ends every
process that carries that daemon's mark. It ignores the signals that are meant for the daemon and costs 9 MiB;
what it needs for the deed it imports only then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

WITHIN_S = 3.0
LET_GO_S = 0.5


class Warden:
    """The daemon's side."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start it, or again when somebody ended it."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._close()
        from ondam.supervisor.family import Identity

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", __name__, self._instance, str(Identity.of(os.getpid()))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Let it go; it ends by itself when the pipe is closed, and is waited for at most a moment."""
        if self._process is not None:
            self._close()
            try:
                self._process.wait(timeout=LET_GO_S)
            except subprocess.TimeoutExpired:
                # It looks once for leftovers before it ends, and there are none: we have looked ourselves.
                self._process.kill()
                self._process.wait()
            self._process = None

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


def main(instance: str, daemon: str) -> int:
    """Wait for the daemon's end, then clean up after it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    from ondam.supervisor.family import DAEMON, INSTANCE, end, marked

    left = end(lambda: [process for process, _ in marked({INSTANCE: instance, DAEMON: daemon})], WITHIN_S)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
