"""What vLLM's log tells that nothing else does. Pure.

The lines are those of vllm/v1/worker/{gpu_model_runner,cpu_model_runner,gpu/model_runner}.py and
vllm/config/vllm.py (0.32.0). A line that a later vLLM words otherwise is not heard, and then its
configuration alone counts.
"""

from __future__ import annotations

import re

LOADING = ("Starting to load model ", "Model loading took ")
"""Either is written once for each time that the weights are loaded, the first by most runners, the second by
those for cards; never by the small model that guesses tokens."""

RELOADING = "Reloading weights inplace"

CAPTURED = "Graph capturing finished in "

NO_GRAPHS = (
    "Cudagraph is disabled under eager mode",
    "Skipping CUDA graph capture",
    "disabling torch.compile, CUDAGraphs",
)

FALLBACKS = (
    "is not compatible with compilation mode",
    "Overriding cudagraph_mode",
    "setting cudagraph_mode=",
)
"""vLLM takes graphs away from itself with a warning, where an attention backend or a model cannot have
them."""

FALLS_TO = re.compile(r"cudagraph_mode\b.*?(?:=| to )(?:CUDAGraphMode\.)?([A-Z_]{2,})\b")
"""The mode that such a warning names as what is left."""

ERROR = re.compile(r"(?:^|\] )((?:\w+\.)*\w*(?:Error|Exception): .+)")
"""The last line of a traceback, in the log's form or bare."""

LONGEST = 300
"""Characters of a line that are kept."""


class Said:
    """The lines so far."""

    def __init__(self) -> None:
        self._loads = dict.fromkeys(LOADING, 0)
        self._reloads = 0
        self.captured = False
        """CUDA graphs were captured."""
        self.no_graphs: str | None = None
        """The line that says there are none."""
        self.fallback: str | None = None
        """The last line that says there are others than were meant."""
        self.error: str | None = None
        """The first exception: those after it only say that there was one."""

    @property
    def loads(self) -> int | None:
        """How often the weights were loaded; None: no line told."""
        return max(self._loads.values()) + self._reloads or None

    @property
    def fell_to(self) -> str | None:
        """The graph mode that the fallback names (``PIECEWISE``)."""
        found = FALLS_TO.search(self.fallback or "")
        return found[1] if found else None

    def hear(self, line: str) -> None:
        """One line, in any order and any number."""
        for words in LOADING:
            self._loads[words] += words in line
        self._reloads += RELOADING in line
        self.captured = self.captured or CAPTURED in line
        if any(words in line for words in NO_GRAPHS):
            self.no_graphs = self.no_graphs or _message(line)
        if any(words in line for words in FALLBACKS):
            self.fallback = _message(line)
        if self.error is None and (raised := ERROR.search(line)):
            self.error = " ".join(raised[1].split())[:LONGEST]


def _message(line: str) -> str:
    """``(EngineCore pid=1) WARNING 11-30 10:43:18 [vllm.py:725] words`` → ``words``."""
    return " ".join(line.rpartition("] ")[2].split())[:LONGEST]
