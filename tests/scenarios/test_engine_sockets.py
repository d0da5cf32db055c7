"""Engines answer their daemon's user and nobody else, whatever the folder around their sockets lets pass."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.scenarios.house import House

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
]

NOBODY = 65_534

AS_SOMEBODY_ELSE = """
import errno, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
for path in sys.argv[2:]:
    with socket.socket(socket.AF_UNIX) as asking:
        try: asking.connect(path); print("ok")
        except OSError as error: print(errno.errorcode[error.errno])
"""


def test_another_user_reaches_no_engine(resident: House) -> None:
    folder = resident.places.runtime
    engines = sorted(str(path) for path in folder.glob("engine-*.sock"))
    assert len(engines) >= 3

    def asked() -> list[str]:
        command = [sys.executable, "-I", "-S", "-c", AS_SOMEBODY_ELSE, str(NOBODY), *engines]
        return subprocess.check_output(command, text=True).split()

    assert folder.stat().st_mode & 0o077 == 0
    assert asked() == ["EACCES"] * len(engines)
    above = [each for each in folder.parents if each.stat().st_mode & 0o001 == 0]
    rights = {each: each.stat().st_mode for each in (folder, *above)}
    try:
        # As if a mishap had opened every folder: the sockets' own rights remain.
        for each, mode in rights.items():
            each.chmod(mode & 0o777 | 0o001)
        assert asked() == ["EACCES"] * len(engines)
    finally:
        for each, mode in rights.items():
            each.chmod(mode & 0o777)
