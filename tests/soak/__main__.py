"""``script/soak``: thousands of turns with random faults from a seed; did anything grow, fall silent or die?

Two daemons at once: one with fakes that answer at once, one with the embedded engines; each counts its own
turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import psutil
from tests.fakes.engine.staffed import ENGINES, SETTINGS, staffed
from tests.scenarios.house import House
from tests.soak.course import course
from tests.soak.inject import Victim
from tests.soak.soak import Soak, grows, tracebacks
from tests.sound.rig import PROGRAMS, SoundRig

from ondam.dialog.actions import Outcome
from ondam.types import Stage

REAL: Mapping[Stage, str] = {"stt": "faster_whisper", "llm": "llama_server", "tts": "piper"}

REAL_SETTINGS = {
    "language": "en",
    "llm.max_tokens": "16",
    # A cache of 256 MiB takes 160 turns to fill: until then nobody could tell it from a leak.
    "engines.llama_server.cache_ram_mib": "32",
    **{key: value for key, value in SETTINGS.items() if key.startswith("supervisor.")},
    "supervisor.ping_timeout_s": "3.0",
    "llm.first_token_timeout_s": "8",
    "llm.idle_timeout_s": "4",
    "answer.within_s": "12",
}

STATE_MIB = 48

ENDS_WITHIN_S = 5.0


def main() -> int:
    """Run it; 0 when every promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000, help="all together")
    parser.add_argument("--real", type=int, default=200, help="of them on the embedded engines")
    parser.add_argument("--faults", type=int, default=200, help="injected, in proportion to the turns")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the result there, as JSON")
    parser.add_argument("--no-sound", action="store_true", help="without the virtual sound card")
    told = parser.parse_args()
    began = time.monotonic()
    result = asyncio.run(soak(told.turns, told.real, told.faults, told.seed, sound=not told.no_sound))
    result |= {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": told.seed,
        "cores": os.cpu_count(),
        "minutes": round((time.monotonic() - began) / 60, 1),
    }
    written = json.dumps(result, indent=2)
    if told.out is not None:
        told.out.write_text(written + "\n")
    print(written)
    for line in summary(result):
        print(line, file=sys.stderr)
    return 1 if result["broken"] else 0


async def soak(turns: int, real: int, faults: int, seed: int, *, sound: bool = True) -> dict[str, Any]:
    """Both houses at once. ``broken`` of the result: every promise that was not kept, in words."""
    on_real = round(faults * real / turns) if turns else 0
    home = Path(tempfile.mkdtemp(prefix="ondam-soak-"))
    own = psutil.Process()
    try:
        shares = {"stub": (turns - real, faults - on_real), "real": (real, on_real)}
        parts = await asyncio.gather(
            *(one(name, home / name, *share, seed, sound) for name, share in shares.items() if share[0])
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
    left = [" ".join(p.cmdline()) for p in own.children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    broken = [line for part in parts for line in part["broken"]]
    broken += [f"left behind: {line}" for line in left]
    return {
        "turns": sum(part["turns"] for part in parts),
        "faults": sum(part["faults"] for part in parts),
        "not_made": sum(sum(part["not_made"].values()) for part in parts),
        "broken": broken,
        **{part["name"]: part for part in parts},
    }


async def one(name: str, home: Path, turns: int, faults: int, seed: int, sound: bool) -> dict[str, Any]:
    """One house through its course, from its start to its end."""
    with (
        disk_of_its_own(home / "state") as disk,
        virtual_sound(home / "snd", sound and name == "stub") as rig,
    ):
        house = _house(name, home, rig)
        victim = Victim(house, ENGINES if name == "stub" else REAL, disk, rig)
        planned = course(name, turns, faults, seed, disk=disk is not None, sound=rig is not None)
        run = Soak(name, victim, planned, say=lambda line: print(line, file=sys.stderr, flush=True))
        broken: list[str] = []
        began = time.monotonic()
        house.open()
        try:
            await house.ready()
            await run.run()
            async with house.client() as client:
                made = (await client.status())["turns"]
            for _ in range(16):  # what waited for a lock or for room is written by then
                if not (lacking := _journal(house, made)):
                    break
                await asyncio.sleep(0.5)
            broken += lacking
        except AssertionError as error:
            broken.append(f"{name}: {error}")
        finally:
            ended = time.monotonic()
            status = house.close()
            ended = time.monotonic() - ended
        report = run.report()
        broken += [f"{name}: the daemon ended with status {status}"] if status else []
        # The promise is five seconds; a machine that others keep busy is slower by as much.
        late = ended > ENDS_WITHIN_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        broken += [f"{name}: it took {ended:.1f} s to end"] if late else []
        broken += [f"{name}: orphan {process.pid}" for process in house.family()]
        broken += [f"silent: {line}" for line in run.unexplained]
        broken += [f"{name}: grew: {line}" for line in grows(report)]
        told = tracebacks(house.log.read_text("utf-8", "replace"))
        report["tracebacks"] = len(told)
        broken += [f"{name}: traceback: {line}" for line in told]
        return {
            "name": name,
            **report,
            "minutes": round((ended + time.monotonic() - began) / 60, 1),
            "broken": broken,
        }


def _house(name: str, home: Path, rig: SoundRig | None) -> House:
    if name == "real":
        return House(home, REAL_SETTINGS)
    if rig is None:
        return staffed(home)
    environ = {key: rig.environment[key] for key in ("PULSE_SERVER", "PULSE_COOKIE")}
    return staffed(home, microphone="microphone", speaker="speaker", environ=environ)


def _journal(house: House, made: int) -> list[str]:
    """Every turn has its row, and every row says how its turn ended."""
    with closing(sqlite3.connect(f"{house.places.journal.as_uri()}?mode=ro", uri=True)) as file:
        found = dict(file.execute("SELECT outcome, count(*) FROM turns GROUP BY outcome").fetchall())
    written = sum(found.values())
    broken = [f"{made - written} of {made} turns are not in the journal"] if written != made else []
    strange = set(found) - set(get_args(Outcome))
    return broken + ([f"outcomes that nobody knows: {strange}"] if strange else [])


@contextmanager
def disk_of_its_own(state: Path) -> Iterator[Path | None]:
    """A small file system at ``state``, where that may be made (script/soak runs in a mount namespace)."""
    state.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={STATE_MIB}m,mode=700", "tmpfs", str(state)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        print("soak: no disk of its own, so none is filled", file=sys.stderr)
        yield None
        return
    try:
        yield state
    finally:
        subprocess.run(["umount", "-l", str(state)], check=False, capture_output=True)


@contextmanager
def virtual_sound(folder: Path, wanted: bool) -> Iterator[SoundRig | None]:
    """A private PulseAudio, where one is installed."""
    if not wanted or not all(shutil.which(program) for program in PROGRAMS["pulseaudio"]):
        yield None
        return
    rig = SoundRig(folder)
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()


def summary(result: dict[str, Any]) -> Iterator[str]:
    """A few lines for a person."""
    counts = (
        f"{result['turns']} turns, {result['faults']} faults ({result['not_made']} found nothing to befall)"
    )
    yield f"{counts}, seed {result['seed']}, {result['minutes']} min"
    for name in ("stub", "real"):
        if (part := result.get(name)) is None:
            continue
        yield f"  {name}: {part['turns']} turns, {part['faults']} faults, {part['verdicts']}"
        for what, found in part["growth"].items():
            judged = "" if found["judged"] else f", not judged: {found['readings']} readings"
            yield f"    {what}: {found['first']} -> {found['last']} ({found['share']:+.1%}{judged})"
    yield from (f"  BROKEN {line}" for line in result["broken"])
    if not result["broken"]:
        yield "  every promise that was judged was kept"


if __name__ == "__main__":
    sys.exit(main())
