"""A daemon's stand-in: starts an engine as the supervisor does, tells its id, and waits to be killed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from ondam.supervisor.log import Log
from ondam.supervisor.process import EngineProcess, Launch


async def main() -> None:
    given = json.loads(sys.argv[1])
    launch = Launch(
        name=given["name"],
        command=given["command"],
        env=given["env"],
        marks=given["marks"],
        folder=Path(given["folder"]),
        pidfile=Path(given["pidfile"]),
    )
    process = await EngineProcess.start(launch, Log(Path(given["log"])))
    print(process.pid, flush=True)
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main())
