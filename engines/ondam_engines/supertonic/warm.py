"""Makes what TensorRT needs for this model on this card: ``ondam engines warm supertonic``.

Prints ``[done/total] what`` for each step. Ends with status 1 and one line on stderr where it cannot be made.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.onnx_sessions import ProviderRefused, lacks_tensorrt, parse_device, why_not
from ondam_engines.supertonic import serve
from ondam_engines.supertonic.networks import NAMES
from ondam_engines.supertonic.profiles import LADDER, LONGEST_SHAPE, SHORTEST
from ondam_engines.supertonic.settings import Settings

SHAPES = (SHORTEST, LONGEST_SHAPE, *LADDER)
"""The ends first: where TensorRT was not given a shape (inside a graph that it cuts in two), it widens what
it is prepared for to what it sees, and everything else lies between."""


def warm(launch: Launch, say: Callable[[int, int, str], None], *, look: bool = False) -> None:
    """Build, or find that nothing has to be built. ``look``: raise ProviderRefused instead of building.

    Raises ProviderRefused, ValueError, OSError, or what the libraries raise.
    """
    settings = Settings.of(launch.options, launch.device)
    kind, card = parse_device(settings.opens(launch.device))
    if kind != "tensorrt":
        say(1, 1, f"nothing to prepare for {kind}")
        return
    if (why := why_not(kind) or lacks_tensorrt()) is not None:
        raise ProviderRefused(f'no TensorRT: {why}. Without it: provider = "cuda" in [engines.supertonic]')
    prepared = serve.prepare(launch, settings, card)
    if prepared.made:
        say(1, 1, "prepared already")
        return
    if look:
        raise ProviderRefused(prepared.lacking())
    total = 1 + len(NAMES) * len(SHAPES)
    say(0, total, "TensorRT builds its engines, minutes for each of four networks")
    prepared.begin()
    model = serve.Supertonic(launch, building=prepared)
    for done, (name, shape) in enumerate(((name, shape) for name in NAMES for shape in SHAPES), 1):
        say(done, total, f"{name}, {shape.ids} units of text, {shape.frames} frames of sound")
        model.compute(name, shape)
    prepared.mark()
    say(total, total, f"prepared in {prepared.folder}")


def main(*, look: bool = False) -> int:
    """The whole command."""
    launch = parse()
    began = time.monotonic()
    try:
        warm(launch, lambda done, total, what: print(f"[{done}/{total}] {what}", flush=True), look=look)
    except Exception as error:  # noqa: BLE001 - onnxruntime, TensorRT and NVML have errors of their own
        if not isinstance(error, ProviderRefused | ValueError | OSError):
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"took {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
