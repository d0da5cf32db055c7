"""The first installation: run by a bundle's ``install.py``, on a machine that has Python and nothing of ours.

Standard library only, and what of Ondam needs no more: this runs from the wheel, before anything is there.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ondam import messages
from ondam.deploy import bundle_install
from ondam.deploy.bundle_versions import Versions, default_bin, default_root
from ondam.errors import OndamError
from ondam.messages import reader_language, text

SIGNERS = Path("/etc/ondam/allowed_signers")
"""Used where it is there and no other list is named."""


class Lines:
    """Implements ``models.progress.Reporter`` with lines on stderr."""

    def task(self, name: str) -> Line:
        """Something that takes a while."""
        return Line(name)

    def say(self, line: str) -> None:
        """One line."""
        print(line, file=sys.stderr, flush=True)


class Line:
    """Tells each tenth of the way."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._total = self._done = 0
        self._tenth = 0

    def size(self, total: int, done: int = 0) -> None:
        """See ``models.progress.Task``."""
        self._total, self._done = total, done

    def advance(self, count: int) -> None:
        """See ``models.progress.Task``."""
        self._done += count
        tenth = self._done * 10 // self._total if self._total else 0
        if tenth != self._tenth:
            self._tenth = tenth
            print(f"{self._name}: {tenth * 10} %", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """See ``models.progress.Task``."""


def main(arguments: Sequence[str]) -> int:
    """Install, or only check; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a path may hold what this locale has no letters for
            stream.reconfigure(errors="backslashreplace")
    options = _options(arguments)
    try:
        _run(options)
    except OndamError as error:
        told = error.message(reader_language())
        print(told.text, file=sys.stderr)
        if told.next:
            print(f"→ {told.next}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        told = messages.message(
            "cli_usage", reader_language(), problem=message, help="python3 install.py --help"
        )
        self.exit(2, f"{told.text}\n→ {told.next}\n")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """What each is for, ``install.py --help`` says."""
    parser = _Parser(add_help=False)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--allowed-signers", type=Path)
    parser.add_argument("--unsigned", action="store_true")
    parser.add_argument("--verify-only", action="store_true")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--bin", type=Path)
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> None:
    reporter = Lines()
    language = reader_language()
    began = time.monotonic()
    root = (options.root or default_root()).absolute()
    signers = options.allowed_signers or (SIGNERS if SIGNERS.exists() else None)
    if options.verify_only:
        bundle_install.verify(options.bundle, root, signers, reporter, unsigned=options.unsigned)
        print(text("bundle_verified", language, path=options.bundle, seconds=time.monotonic() - began))
        return
    versions = Versions(root)
    version = bundle_install.Installation(options.bundle, versions, reporter).run(
        signers, unsigned=options.unsigned
    )
    for line in bundle_install.afterwards(version, versions, options.bin or default_bin()):
        print(line.in_language(language))
    print(text("bundle_installed", language, name=version.identity, seconds=time.monotonic() - began))
