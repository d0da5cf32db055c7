"""The control socket of a system's daemon, served as another user. Arguments: JSON of ``{"path", "user",
"group"}``. Prints a line when it listens, and ends with its stdin."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import sys
import tempfile
from pathlib import Path

from tests.faults.callers import calls
from tests.unit.control.fake_daemon import FakeDaemon

from ondam.control.access import groups_of
from ondam.control.server import Server
from ondam.messages import catalog


async def warmed_up() -> None:
    """What is imported late is imported now: the Python of the tests may lie in root's home."""
    with tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        path = Path(folder) / "s"
        server = Server(FakeDaemon(), path)
        await server.start()
        await calls(path)
        await asyncio.to_thread(groups_of, 0)
        catalog()
        await server.stop()


async def serve(path: Path, group: str) -> None:
    server = Server(FakeDaemon(), path, group=group)
    await server.start()
    print("listening", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


def main() -> None:
    told = json.loads(sys.argv[1])
    user = pwd.getpwnam(told["user"])
    asyncio.run(warmed_up())
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    asyncio.run(serve(Path(told["path"]), told["group"]))


if __name__ == "__main__":
    main()
