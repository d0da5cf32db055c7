"""A path that a person wrote, with its ``~``. A home that nobody knows is a file that is not there."""

from __future__ import annotations

import errno
from pathlib import Path


def at_home(path: str | Path) -> Path:
    """Raises FileNotFoundError: no HOME and no entry in the user database, or ``~somebody`` whom it does not
    know."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, "nobody knows that home folder", str(path)) from error
