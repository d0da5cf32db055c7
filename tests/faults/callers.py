"""Calls a control socket as one user after the other.

Arguments: JSON of ``{"path", "users": [[name, group]]}``; ``group`` is what the process's own is to be, or
null for the user's. Prints ``[{"read": code, …}]``; the code of a call that went well is "ok".
"""

from __future__ import annotations

import asyncio
import grp
import json
import os
import pwd
import sys
from pathlib import Path

from ondam.control.client import Client
from ondam.errors import OndamError
from ondam.messages import catalog


async def calls(path: Path) -> dict[str, str]:
    told = {}
    async with Client(path) as client:
        for permission, call in (
            ("read", client.status),
            ("command", lambda: client.ask("hello")),
            ("admin", client.reload),
        ):
            try:
                await call()
            except OndamError as error:
                told[permission] = error.code
            else:
                told[permission] = "ok"
    return told


def as_user(path: Path, name: str, group: str | None) -> dict[str, str]:
    reading, writing = os.pipe()
    if os.fork() == 0:
        user = pwd.getpwnam(name)
        os.setgroups([] if group else os.getgrouplist(name, user.pw_gid))
        os.setgid(grp.getgrnam(group).gr_gid if group else user.pw_gid)
        os.setuid(user.pw_uid)
        os.write(writing, json.dumps(asyncio.run(calls(path))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        answer: dict[str, str] = json.loads(told.read())
    os.wait()
    return answer


def main() -> None:
    told = json.loads(sys.argv[1])
    path = Path(told["path"])
    # As root first: what is imported late is imported then; others may not read the Python of the tests.
    catalog()
    root = asyncio.run(calls(path))
    assert root == {"read": "ok", "command": "ok", "admin": "ok"}, root
    print(json.dumps([as_user(path, *user) for user in told["users"]]))


if __name__ == "__main__":
    main()
