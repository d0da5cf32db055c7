"""Counts how often weights are loaded, for ``report.weight_loads``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Loaded = TypeVar("Loaded")


class Loads:
    """Of one process."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, load: Callable[Given, Loaded]) -> Callable[Given, Loaded]:
        """``load``, which reads weights each time that it is called, whoever calls it."""

        def counting(*args: Given.args, **named: Given.kwargs) -> Loaded:
            self.count += 1
            return load(*args, **named)

        return counting
