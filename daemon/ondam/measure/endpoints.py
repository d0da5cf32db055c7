"""How well endpoints were placed: cut off in the middle, and waited for at the end. Pure.

Times are milliseconds since the microphone was opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ondam.measure.distribution import distribution


@dataclass(frozen=True, slots=True)
class Endpoint:
    """It was decided that the user has finished."""

    at_ms: float
    audible_ms: float
    """When the first sound of its answer would be heard."""
    resumed_ms: float | None = None
    """When it was noticed that the user goes on; None where they do not, or too late to take it back."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One utterance, and the endpoints it got."""

    ends_ms: float
    """The end of the user's last voiced 10 ms."""
    endpoints: tuple[Endpoint, ...]

    @property
    def false(self) -> tuple[Endpoint, ...]:
        """Endpoints before the end: the user was cut off."""
        return tuple(endpoint for endpoint in self.endpoints if endpoint.at_ms < self.ends_ms)

    @property
    def last(self) -> Endpoint | None:
        """The first endpoint after the end; None where none came."""
        return next((endpoint for endpoint in self.endpoints if endpoint.at_ms >= self.ends_ms), None)


@dataclass(frozen=True, slots=True)
class Wait:
    """From the end of utterances on, in milliseconds. None where there was none to measure."""

    mean: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """A set of trials under one way of endpointing.

    ``heard`` is to ``sound`` what ``false`` is to ``wait``: an endpoint that is taken back before its answer
    sounds does no harm, and one that comes before the answer is ready gains nothing.
    """

    utterances: int
    cut: int
    """Utterances with at least one false endpoint."""
    false: int
    """False endpoints; an utterance may have several."""
    heard: int
    """Of those, how many let an answer sound before it was noticed that the user goes on."""
    late: int
    """Of those, how many were noticed too late to be taken back, or never."""
    wait: Wait
    """Until the endpoint."""
    sound: Wait
    """Until the answer would be heard."""
    unended: int
    """Utterances after whose end no endpoint came."""


def score(trials: Sequence[Trial], *, take_back_ms: float) -> Score:
    """``take_back_ms``: how long after it an endpoint may be taken back."""
    false = [endpoint for trial in trials for endpoint in trial.false]
    last = [(endpoint, trial.ends_ms) for trial in trials if (endpoint := trial.last) is not None]
    return Score(
        utterances=len(trials),
        cut=sum(1 for trial in trials if trial.false),
        false=len(false),
        heard=sum(1 for e in false if e.resumed_ms is None or e.resumed_ms >= e.audible_ms),
        late=sum(1 for e in false if e.resumed_ms is None or e.resumed_ms - e.at_ms > take_back_ms),
        wait=_wait([endpoint.at_ms - ends_ms for endpoint, ends_ms in last]),
        sound=_wait([endpoint.audible_ms - ends_ms for endpoint, ends_ms in last]),
        unended=len(trials) - len(last),
    )


def _wait(waits: Sequence[float]) -> Wait:
    figures = distribution(waits)
    mean = round(float(np.mean(waits)), 1) if waits else None
    return Wait(mean, figures["p50"], figures["p90"])


def at_equal_wait(curve: Sequence[tuple[float, float]], wait_ms: float) -> float | None:
    """How many false endpoints another way of endpointing would have at an added wait of ``wait_ms``.

    ``curve``: its (added wait, false endpoints), in any order; straight lines between its points. None
    outside of it.
    """
    known = sorted(curve)
    waits = [wait for wait, _ in known]
    if not known or not waits[0] <= wait_ms <= waits[-1]:
        return None
    return float(np.interp(wait_ms, waits, [false for _, false in known]))
