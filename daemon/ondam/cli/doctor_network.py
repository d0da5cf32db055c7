"""``ondam doctor``: what keeps engines from the network on this system."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ondam.cli.finding import Finding
from ondam.messages import Phrase
from ondam.supervisor.airlock import VARIABLE, Network
from ondam.supervisor.isolation import Isolation
from ondam.supervisor.leash import leashed

if TYPE_CHECKING:
    from ondam.config import Config


def attainable(network: Network) -> Isolation:
    """What a process that is to have ``network`` gets here, tried with one that says so and ends."""
    if sys.platform != "linux":
        return Isolation(network)
    code = f"import os; print(os.environ[{VARIABLE!r}])"
    command = leashed([sys.executable, "-I", "-S", "-c", code], network)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Isolation.parse(done.stdout.strip()) or Isolation("open")


def network(config: Config) -> Iterator[Finding]:
    """Well where they have none; where nothing can be done about it, it is told and no fault."""
    setting = config.supervisor.isolation
    if setting == "off":
        yield Finding.told("network", True, Phrase("doctor_network_off"))
        return
    found = attainable("none")
    means = ", ".join(found.means)
    if not found.closed:
        well = sys.platform != "linux" and setting != "require"
        yield Finding.told("network", well, Phrase("doctor_network_open"))
    elif found.remains:
        yield Finding.told("network", True, Phrase("doctor_network_abstract", means=means))
    else:
        yield Finding.told("network", True, Phrase("doctor_network_closed", means=means))
