"""Names to listen for, as Qwen3-ASR wants them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKS = re.compile(r"[<>|]+")
"""What the model's own marks (``<|im_end|>``, ``<asr_text>``) are made of: no name may end the prompt."""


def hints(names: Sequence[str]) -> str:
    """Names to listen for, as the context that the model is given in front of the audio."""
    return ", ".join(filter(None, (_MARKS.sub(" ", name).strip() for name in names)))
