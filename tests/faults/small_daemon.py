"""A daemon that is nothing but a supervisor: run as a script, so that a test can kill it.

Argument: JSON of ``{"ignore_sigterm": bool}`` for its one engine, which has a grandchild. Prints one JSON
line when the engine is ready, and ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from tests.fakes.engine.rig import Rig, planned

from ondam.places import places
from ondam.supervisor.instance import claim


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    options = json.loads(sys.argv[1])
    with claim(places()) as swept:
        async with Rig(places(), planned("tts", grandchild=True, **options)) as rig:
            await rig.start()
            (engine,) = rig.fleet.status()
            print(json.dumps({"engine": engine.pid, "state": engine.state, "ended": swept.ended}), flush=True)
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
