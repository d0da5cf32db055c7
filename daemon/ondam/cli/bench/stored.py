"""The format of a stored run."""

from __future__ import annotations

FORMAT = 1
"""``ondam bench compare`` and ``ondam report --run`` read it."""
