"""What the tray costs while nothing happens, and in a conversation: share of a core, and memory. Beside it
what the daemon spends, with the processes that it starts for whoever looks on and without its engines.

    script/measure_tray.py              a minute of turns without it, one every five seconds; with it a minute
                                at rest, and again a minute of turns
    script/measure_tray.py --seconds N  of each

A display without a screen, Xfce's panel, a daemon with small engines. Needs
what the tests need (script/test installs it). Memory is resident memory, shared libraries included.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.fakes.engine.staffed import staffed  # noqa: E402
from tests.faults.matrix import question  # noqa: E402
from tests.scenarios.house import House  # noqa: E402
from tests.tray.conftest import Tray, session  # noqa: E402

from ondam.deploy.tray import SYSTEM_PYTHON, install  # noqa: E402
from ondam.models.registry import Registry  # noqa: E402
from ondam.places import places  # noqa: E402

MIB = 1024 * 1024

EVERY_S = 5.0


async def turns(house: House, seconds: float) -> None:
    end = time.monotonic() + seconds
    async with house.client() as client:
        while time.monotonic() < end:
            begun = time.monotonic()
            await client.wav_turn(question(), "en")
            await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - begun)))


def spent_s(process: psutil.Process) -> float:
    """Processor time, with that of children that have ended: a daemon's reports, and not its engines."""
    spent = process.cpu_times()
    return float(spent.user + spent.system + spent.children_user + spent.children_system)


def measured(house: House, seconds: float, what: str, tray: psutil.Process | None, *, turning: bool) -> None:
    assert house.process is not None
    both = [psutil.Process(house.process.pid), *([tray] if tray else [])]
    before, begun = [spent_s(one) for one in both], time.monotonic()
    if turning:
        asyncio.run(turns(house, seconds))
    else:
        time.sleep(seconds)
    took = time.monotonic() - begun
    daemon, *icon = [
        f"{100 * (spent_s(one) - spent) / took:5.2f} % of a core"
        for one, spent in zip(both, before, strict=True)
    ]
    memory = f"   {tray.memory_info().rss / MIB:5.1f} MiB" if tray else ""
    print(f"{what:<26} daemon {daemon}   tray {icon[0] if icon else '–'}{memory}")


def main(seconds: float) -> None:
    made = install(places(), SYSTEM_PYTHON, Registry.from_pip().uv_environment())
    with session() as desktop, tempfile.TemporaryDirectory(prefix="ondam-") as folder:
        desktop.panel()
        home = Path(folder)
        house = staffed(home, environ={"XDG_RUNTIME_DIR": desktop.environ()["XDG_RUNTIME_DIR"]})
        (home / "data" / "tray").symlink_to(made.root)
        house.open()
        tray = Tray(desktop, home)
        try:
            asyncio.run(house.ready())
            measured(house, seconds, "with turns, without it", None, turning=True)
            tray.start()
            with desktop.bus() as bus:
                tray.icon(bus)
            assert tray.process is not None
            process = psutil.Process(tray.process.pid)
            time.sleep(3)  # its start is over
            measured(house, seconds, "at rest", process, turning=False)
            measured(house, seconds, "with turns", process, turning=True)
        finally:
            tray.end()
            house.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    main(parser.parse_args().seconds)
