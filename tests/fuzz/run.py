"""Attacks everything that reads what others send, and prints what came of it. See docs/privacy.md.

script/fuzz [--inputs 100000] [--seed 1] [--seconds 1200]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from ondam.measure.stubs import stub_engines, stub_settings
from tests.fuzz.targets import Result, clients, control, engines, kit
from tests.scenarios.house import House

SHARES = {"control": 0.4, "clients": 0.1, "kit": 0.13, "engines": 0.04}
"""Of all inputs: the control socket, each of three clients, each of two servers, a daemon on bad engines."""

DELAYS = {"stt": 5.0, "ttft": 5.0, "clause": 5.0, "tts": 5.0}


async def everything(inputs: int, seed: int, seconds: float) -> list[Result]:
    """One result for each target. Raises whatever should not have happened, with its input's number."""
    ends = time.monotonic() + seconds
    results: list[Result] = []
    folder = Path(tempfile.mkdtemp(prefix="o-"))  # short: a socket's path may have 107 bytes
    try:

        def until(share: float) -> float:
            return time.monotonic() + max(0.0, ends - time.monotonic()) * share

        def share(name: str) -> int:
            return max(1, round(inputs * SHARES[name]))

        results += await kit(folder, share("kit"), seed, until(0.2))
        results += await clients(folder, share("clients"), seed, until(0.3))
        async with stub_engines(folder, DELAYS):
            house = House(folder / "control", {"language": "en", **stub_settings(folder)})
            house.open()
            try:
                await house.ready()
                results.append(await control(house, share("control"), seed, until(0.8)))
            finally:
                assert house.close() == 0
        hostile = {
            "stt.address": f"unix://{folder}/stt.sock",
            "llm.url": f"unix://{folder}/llm.sock",
            "tts.address": f"unix://{folder}/tts.sock",
            "tts.spare": "",
            "llm.first_token_timeout_s": "0.3",
            "llm.idle_timeout_s": "0.3",
        }
        house = House(folder / "engines", {"language": "en", **hostile})
        house.open()
        try:
            await house.ready()
            results.append(await engines(house, share("engines"), folder, seed, until(1.0)))
        finally:
            assert house.close() == 0
    finally:
        shutil.rmtree(folder)
    return results


def table(results: list[Result]) -> str:
    """As it stands in the docs."""
    lines = ["| target | inputs | seconds | memory | others waited at most | whole turns meanwhile |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for one in results:
        waited = f"{one.slowest_ms:.0f} ms" if one.slowest_ms else "–"
        lines.append(
            f"| {one.target} | {one.inputs:,} | {one.seconds:.0f} | {one.grown_mib:+.1f} MiB | {waited}"
            f" | {one.turns or '–'} |"
        )
    lines.append(f"| all | {sum(one.inputs for one in results):,} | | | | |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=1200.0, help="Each target ends with its share of it."
    )
    given = parser.parse_args()
    results = asyncio.run(everything(given.inputs, given.seed, given.seconds))
    print(table(results))
    for one in results:
        print(f"{one.target}: {dict(one.met.most_common(12))}", file=sys.stderr)
    if sum(one.inputs for one in results) < given.inputs * 0.99:
        sys.exit("the time was over before the inputs were")


if __name__ == "__main__":
    main()
