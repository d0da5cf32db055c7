from __future__ import annotations

from typing import Any, TypeAlias

VllmConfig: TypeAlias = dict[str, Any]
