"""What a conversation of its own (a WAV file's) may do otherwise than the daemon's configuration says.

Only what decides when a turn begins and ends: two ways of it can then be compared on the same engines,
turn by turn. Engines, devices and words stay the daemon's.
"""

from __future__ import annotations

from collections.abc import Mapping

from ondam.config import Config, DetectConfig, DraftsConfig, EndpointConfig
from ondam.config.contradictions import contradictions
from ondam.config.schema import Table, check


class Settings(Table):
    """The tables of ``config.toml`` that a conversation may have for itself."""

    detect: DetectConfig
    endpoint: EndpointConfig
    drafts: DraftsConfig


def for_conversation(config: Config, given: Mapping[str, object]) -> Config:
    """``config`` with ``given`` (``{"endpoint": {"mode": "silence"}}``) laid over it.

    Raises ConfigError with every problem: a table that is the daemon's alone, an unknown key, a wrong value.
    """
    if not given:
        return config
    values: dict[str, object] = {name: getattr(config, name).model_dump() for name in Settings.model_fields}
    for name, table in given.items():
        below = values.get(name)
        both = isinstance(below, dict) and isinstance(table, Mapping)
        values[name] = {**below, **table} if both else table  # type: ignore[dict-item]  # both are mappings
    drafts = given.get("drafts")
    if isinstance(drafts, Mapping) and "most_on_battery" not in drafts:
        # Whoever asks for fewer drafts means on battery as well.
        most, laid = drafts.get("most_per_turn"), values["drafts"]
        if isinstance(most, int) and isinstance(laid, dict):
            laid["most_on_battery"] = min(laid["most_on_battery"], most)
    checked = check(Settings, values, "settings", contradictions=contradictions)
    return config.model_copy(update={name: getattr(checked, name) for name in Settings.model_fields})
