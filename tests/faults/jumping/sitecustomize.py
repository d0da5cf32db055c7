"""Python with a wall clock that somebody sets: it reads seconds from the file that ONDAM_TEST_CLOCK names.

Found by PYTHONPATH at the daemon's start, before anything asks for the time. The monotonic clock stays.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

_FILE = Path(os.environ["ONDAM_TEST_CLOCK"])
_time, _now = time.time, datetime.datetime.now


def _offset() -> float:
    try:
        return float(_FILE.read_text() or 0)
    except OSError:
        return 0.0


class _Set(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _now(tz) + datetime.timedelta(seconds=_offset())


time.time = lambda: _time() + _offset()
datetime.datetime = _Set  # type: ignore[misc]
