"""What follows when an engine did not get what was asked for: for all, or for one by its name. Pure."""

from __future__ import annotations

from typing import get_args

from ondam.config import Config
from ondam.planner.plan import Policy

POLICY = "policy"
"""The one key of ``[engines.NAME]`` that is no option of the engine: ``supervisor.policy`` for it alone."""

POLICIES: tuple[Policy, ...] = get_args(Policy)


def policy_of(config: Config, engine: str) -> Policy:
    """``require`` or ``warn`` for the engine of that name."""
    own = config.engines.get(engine, {}).get(POLICY)
    return next((policy for policy in POLICIES if policy == own), config.supervisor.policy)
