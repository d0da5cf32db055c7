"""Ties a process to its parent's life: when the daemon dies, however it dies, the engine is killed with it.

On Linux the kernel does it (``PR_SET_PDEATHSIG``, prctl(2)): this file, run as a script, asks for the signal
and becomes the engine. Elsewhere there is no such thing, and the warden (``warden.py``), which on Linux only
ends the engines' own children, ends the engines too.

Two traps. The signal is sent when the *thread* that started the process ends, so engines are started from the
event loop's thread, never from a worker. And a parent that died before the call is not noticed by it: hence
the look at the parent's id afterwards.

Run with ``-I -S``: nothing but the standard library, 20 ms.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
"""linux/prctl.h."""

ORPHANED = 125
"""Exit status when the parent was gone already."""


def leashed(command: Sequence[str]) -> list[str]:
    """``command``, made to die with this process."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(arguments: Sequence[str]) -> int:
    """Take the leash and become the command. Returns only when that failed."""
    import ctypes

    parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        print(f"ondam: no leash: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return ORPHANED
    if os.getppid() != int(parent):
        return ORPHANED
    # Python ignores SIGPIPE, and what is ignored stays so in the new program; it should start as from a
    # shell.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"ondam: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
