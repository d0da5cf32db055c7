"""How long a request waits behind those of others: M/M/c. Pure.

Requests come at random (Poisson), an engine serves ``at_once`` of them at a time in the order in which they
came, and serving takes a random (exponential) time. Engines take steadier times than that, so the wait is
rather too long than too short. A. K. Erlang, 1917; the formulas stand in L. Kleinrock, Queueing Systems I
(1975), chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEPS = 1024
"""Points of a waiting time's distribution: the quantile of a sum is rounded up by at most 3 of them."""

TAIL = 1e-5
"""What lies beyond the last point."""


@dataclass(frozen=True, slots=True)
class Queue:
    """In front of one engine. ``service_ms``: how long a request keeps it, on average."""

    arrivals_per_s: float
    service_ms: float
    at_once: int

    @property
    def utilisation(self) -> float:
        """Part of its time that it is busy. From 1 on the queue grows for ever: there is no wait to tell."""
        return self.arrivals_per_s * self.service_ms / 1000 / self.at_once

    @property
    def saturated(self) -> bool:
        """Whether more comes than it can serve."""
        return self.utilisation >= 1

    @property
    def waits(self) -> float:
        """Probability that a request has to wait (Erlang C; the utilisation where one is served at a time).
        Raises ValueError when saturated."""
        if self.saturated:
            raise ValueError("saturated")
        offered = self.arrivals_per_s * self.service_ms / 1000
        blocked = 1.0  # Erlang B, by its recursion: powers and factorials would overflow
        for servers in range(1, self.at_once + 1):
            blocked = offered * blocked / (servers + offered * blocked)
        return blocked / (1 - self.utilisation * (1 - blocked))

    @property
    def drains_per_ms(self) -> float:
        """Rate of the exponential that the wait follows, where there is one."""
        return (self.at_once / self.service_ms) - self.arrivals_per_s / 1000 if self.service_ms else math.inf

    def wait_ms(self, quantile: float) -> float:
        """The wait that a part ``quantile`` of requests does not exceed."""
        if not self.service_ms or self.waits <= 1 - quantile:
            return 0.0
        return math.log(self.waits / (1 - quantile)) / self.drains_per_ms


def summed_wait_ms(queues: Sequence[Queue], quantile: float) -> float:
    """The quantile of all waits together, taken as independent of each other."""
    busy = [queue for queue in queues if queue.wait_ms(1 - TAIL) > 0]
    if not busy:
        return 0.0
    if len(busy) == 1:
        return busy[0].wait_ms(quantile)
    step = sum(queue.wait_ms(1 - TAIL) for queue in busy) / STEPS
    total = np.ones(1)
    for queue in busy:
        # The part up to each point, so that every wait is rounded up to the next one.
        beyond = queue.waits * np.exp(-queue.drains_per_ms * step * np.arange(STEPS))
        part = np.concatenate(([1 - beyond[0]], beyond[:-1] - beyond[1:]))
        total = np.convolve(total, part)
    reached = np.searchsorted(np.cumsum(total), quantile)
    return float(reached * step)
