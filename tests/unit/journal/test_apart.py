"""What is computed by a process of its own comes back, or why it does not; nobody who left keeps it going."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from ondam.errors import JournalError
from ondam.journal.apart import NICENESS, made_apart


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


async def test_what_it_prints_comes_back_and_it_stands_behind_whoever_speaks() -> None:
    code = "import os, time; time.sleep(0.3); print('{\"niceness\": %d}' % os.nice(0))"
    assert (await made_apart(python(code)))["niceness"] >= NICENESS


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("""print('{"error": {"text": "no journal"}}'); raise SystemExit(1)""", "no journal"),
        ("raise SystemExit('it broke')", "it broke"),
        ("raise SystemExit(3)", "status 3"),
    ],
)
async def test_why_it_failed_is_told(code: str, reason: str) -> None:
    with pytest.raises(JournalError) as caught:
        await made_apart(python(code))
    assert (caught.value.code, caught.value.facts["reason"]) == ("report_failed", reason)


async def test_whoever_leaves_ends_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    asking = asyncio.create_task(made_apart(python(code)))
    while not (begun.exists() and begun.read_text()):
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not psutil.pid_exists(int(begun.read_text()))
