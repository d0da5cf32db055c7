"""``ondam``, and ``python -m ondam``."""

from __future__ import annotations

import sys

from ondam.cli import command
from ondam.cli.frame import run


def main() -> None:
    """Run one command and leave with its exit code."""
    sys.exit(run(command, sys.argv[1:]))


if __name__ == "__main__":
    main()
