"""What every number travels with: what stays the same from turn to turn, named by its hash. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME_LENGTH = 12
"""Hex digits of SHA-256: enough for the few hundred that a machine ever sees."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """``facts``: JSON of its own, the same in all turns of that ``name``."""

    name: str
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Conditions:
        """Named after their content: the same facts have the same name in every journal."""
        written = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return cls(hashlib.sha256(written.encode()).hexdigest()[:NAME_LENGTH], facts)
