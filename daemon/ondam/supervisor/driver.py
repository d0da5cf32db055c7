"""Which variants of an engine NVIDIA's driver can run. Asked before anything is downloaded.

A program made for CUDA 13 does not start under a driver of CUDA 12. The numbers are in each manifest
(``[environment] drivers``), else the planner's (``planner.gate``).
"""

from __future__ import annotations

from collections.abc import Callable

from ondam.errors import EngineError
from ondam.messages import Phrase
from ondam.planner.gate import CUDA_DRIVERS
from ondam.planner.gpus import Sight
from ondam.supervisor.manifest import EngineFolder, Environment


def major(driver: str | None) -> int | None:
    """580 of ``580.65.06``; None where there is no driver, or no number in its name."""
    head = (driver or "").partition(".")[0]
    return int(head) if head.isdecimal() else None


def needed(environment: Environment, variant: str) -> int | None:
    """The lowest major version of NVIDIA's driver for a variant; None where it needs none."""
    return major(environment.drivers.get(variant)) or CUDA_DRIVERS.get(variant)


def runnable(environment: Environment, driver: str | None) -> list[str]:
    """Variants for NVIDIA's cards that ``driver`` can run, the one that asks most of it first."""
    found = major(driver) or 0
    asks = {variant: wanted for variant in environment.locks if (wanted := needed(environment, variant))}
    return sorted((v for v, wanted in asks.items() if wanted <= found), key=lambda v: -asks[v])


def gate(engine: EngineFolder, variant: str, look: Callable[[], Sight]) -> None:
    """Raises EngineError where this machine's driver cannot run the ``variant``; it names the driver needed.

    ``look`` is called only for a variant that needs one.
    """
    environment = engine.manifest.environment
    wanted = needed(environment, variant)
    if wanted is None:
        return
    sight = look()
    # All cards of a machine have one driver.
    driver = sight.cards[0].driver if sight.cards else None
    if variant in runnable(environment, driver):
        return
    others = [v for v in (*runnable(environment, driver), "cpu") if v in environment.locks]
    facts: dict[str, object] = {
        "engine": engine.name,
        "variant": variant,
        "needed": wanted,
        "others": Phrase("engine_driver_other", engine=engine.name, variant=others[0]) if others else "",
    }
    if driver is not None:
        raise EngineError("engine_driver_too_old", found=driver, **facts)
    raise EngineError("engine_driver_absent", trouble=sight.trouble or Phrase("gpu_none"), **facts)
