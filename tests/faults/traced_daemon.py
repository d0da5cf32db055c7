"""A supervisor with one engine that calls out, to be watched: run as a script, and ended by itself.

Argument: JSON of ``{"isolation": …, "into": PATH}``. Somebody listens on an abstract socket beside it. Prints
one JSON line with the ids of both processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys

from tests.fakes.engine.rig import Rig, planned

from ondam.places import places
from ondam.supervisor.instance import claim

NAME = "ondam-test-bus"


async def main() -> None:
    told = json.loads(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as bus, claim(places()):
        bus.bind("\0" + NAME)
        bus.listen()
        engine = planned("tts", calls=told["into"], abstract=NAME)
        async with Rig(places(), engine, isolation=told["isolation"]) as rig:
            await rig.start()
            (status,) = rig.fleet.status()
            print(
                json.dumps({"daemon": os.getpid(), "engine": status.pid, "state": status.state}), flush=True
            )


if __name__ == "__main__":
    asyncio.run(main())
