"""Ties a process to its parent's life: when the daemon dies, however it dies, the engine is killed with it.

On Linux the kernel does it (``PR_SET_PDEATHSIG``, prctl(2)): this file, run as a script, asks for the signal
and becomes the engine. Elsewhere there is no such thing, and the warden (``warden.py``), which on Linux only
ends the engines' own children, ends the engines too.

Two traps. The signal is sent when the *thread* that started the process ends, so engines are started from the
event loop's thread, never from a worker. And a parent that died before the call is not noticed by it: hence
the look at the parent's id afterwards.

It also takes the engine's network away (``airlock``): what a process does to itself before it becomes
another cannot be forgotten, and costs nothing afterwards.

Run with ``-I -S``: nothing but the standard library, 20 ms.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ondam.supervisor.airlock import Network

PR_SET_PDEATHSIG = 1
"""linux/prctl.h."""

ORPHANED = 125
"""Exit status when the parent was gone already."""

NOT_CLOSED = 124
"""Exit status when the network could not be taken away and had to be."""


def leashed(command: Sequence[str], network: Network = "open", *, required: bool = False) -> list[str]:
    """``command``, made to die with this process, with no more than ``network``.

    ``required``: where it would keep a network, it ends with ``NOT_CLOSED`` and never becomes the command.
    """
    if sys.platform != "linux" and not required:
        return list(command)
    isolation = "require" if required else "possible"
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), network, isolation, *command]


def main(arguments: Sequence[str]) -> int:
    """Take the leash and become the command. Returns only when that failed."""
    import ctypes

    parent, network, isolation, *command = arguments
    closed = network != "open" and cut_off(network)
    if isolation == "require" and not closed:
        print('ondam: it would keep a network, and supervisor.isolation is "require"', file=sys.stderr)
        return NOT_CLOSED
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


def cut_off(network: str) -> bool:
    """Take this process's network away, and write into its environment how. Whether none is left.

    Before the signal is asked for: the kernel forgets that when a process changes what it may do.
    """
    # Found beside this file: a script that is run with -I has nothing of ours on its path.
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("airlock", __file__.replace("leash.py", "airlock.py"))
    assert spec is not None and spec.loader is not None
    airlock = module_from_spec(spec)
    spec.loader.exec_module(airlock)
    means = airlock.isolate(network)
    os.environ[airlock.VARIABLE] = " ".join((network, *means))
    return bool(airlock.closed(network, means))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
