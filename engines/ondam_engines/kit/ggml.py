"""What llama.cpp's engines compute on, by the names that ggml gives to what it found. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAMES = {"cuda": ("CUDA",), "vulkan": ("Vulkan",), "metal": ("Metal", "MTL")}
"""How ggml's name of a device begins, for each kind that a plan knows; a number follows: ``CUDA0``."""

ON_CPU = ("CPU", "BLAS", "AMX")
"""ggml's other ways of computing on the processor."""


def computes_on(wanted: str, found: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The device as a report names it, and its ``why`` where it is not ``wanted`` (``cpu``, ``cuda:0``).

    llama.cpp takes layers that are meant for a card it does not have, and computes them elsewhere in silence.
    """
    kind, _, number = wanted.partition(":")
    begins = NAMES.get(kind, ())
    fits = any(
        name == f"{begin}{number}" if number else name.startswith(begin) for name in found for begin in begins
    )
    if wanted == "cpu" or fits:
        return wanted, {}
    others = [name for name in found if name not in ON_CPU]
    if not others:
        return "cpu", {"device": f"llama.cpp was compiled without {kind}, or finds no such card"}
    return re.sub(r"(\d+)$", r":\1", others[0].lower()), {"device": f"llama.cpp finds {', '.join(others)}"}
