"""What came with this Ondam when a bundle installed it: a version's folder, which nothing changes later.

``<folder>/venv`` is the environment that this process runs in; beside it lie the engines' environments and
the models that the bundle carried, laid out as in ``places.Places.data``. Everywhere else there is no such
folder. Standard library only.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from ondam.deploy.bundle_manifest import MARKER


@cache
def carried() -> Path | None:
    """The folder of the version that is running; None where Ondam was not installed from a bundle."""
    folder = Path(sys.prefix).parent
    return folder if (folder / MARKER).is_file() else None
