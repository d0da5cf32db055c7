"""Which variants of an engine NVIDIA's driver can run. Asked before anything is downloaded.

A program made for CUDA 13 does not start under a driver of CUDA 12; the numbers are in each manifest
(``[environment] drivers``) and come from NVIDIA's CUDA release notes, table "CUDA driver".
"""

from __future__ import annotations

from collections.abc import Callable

from ondam.errors import EngineError
from ondam.messages import Phrase
from ondam.planner.gpus import Sight
from ondam.supervisor.manifest import EngineFolder, Environment


def major(driver: str | None) -> int | None:
    """580 of ``580.65.06``; None where there is no driver, or no number in its name."""
    head = (driver or "").partition(".")[0]
    return int(head) if head.isdecimal() else None


def runnable(environment: Environment, driver: str | None) -> list[str]:
    """Variants for NVIDIA's cards that ``driver`` can run, the one that asks most of it first."""
    found = major(driver)
    needed = {variant: major(wanted) or 0 for variant, wanted in environment.drivers.items()}
    able = [variant for variant, wanted in needed.items() if found is not None and found >= wanted]
    return sorted(able, key=lambda variant: -needed[variant])


def gate(engine: EngineFolder, variant: str, look: Callable[[], Sight]) -> None:
    """Raises EngineError where this machine's driver cannot run the ``variant``; it names the driver needed.

    ``look`` is called only for a variant that needs one.
    """
    environment = engine.manifest.environment
    needed = environment.drivers.get(variant)
    if needed is None:
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
        "needed": needed,
        "others": Phrase("engine_driver_other", engine=engine.name, variant=others[0]) if others else "",
    }
    if driver is not None:
        raise EngineError("engine_driver_too_old", found=driver, **facts)
    raise EngineError("engine_driver_absent", trouble=sight.trouble or Phrase("gpu_none"), **facts)
