from __future__ import annotations

import pytest

from ondam.config import load
from ondam.config.conversation import for_conversation
from ondam.errors import ConfigError


def test_what_is_given_holds_and_the_rest_stays_as_configured() -> None:
    config = load(None, {"endpoint": {"silence_ms": 700}})
    own = for_conversation(config, {"endpoint": {"mode": "silence"}, "drafts": {"most_per_turn": 0}})
    assert (own.endpoint.mode, own.endpoint.silence_ms, own.drafts.most_per_turn) == ("silence", 700, 0)
    assert own.llm == config.llm
    assert config.endpoint.mode == "smart_turn"


def test_fewer_drafts_hold_on_battery_as_well() -> None:
    config = load(None, {"drafts": {"most_per_turn": 3, "most_on_battery": 2}})
    for asked, expected in ((0, 0), (1, 1), (3, 2)):
        own = for_conversation(config, {"drafts": {"most_per_turn": asked}})
        assert (own.drafts.most_per_turn, own.drafts.most_on_battery) == (asked, expected)


def test_nothing_given_is_the_same_configuration() -> None:
    config = load(None)
    assert for_conversation(config, {}) is config


def test_engines_and_devices_are_the_daemons_alone() -> None:
    with pytest.raises(ConfigError, match="llm: unknown key"):
        for_conversation(load(None), {"llm": {"max_tokens": 1}})


def test_every_problem_is_told_at_once() -> None:
    wrong = {"endpoint": {"mode": "never", "silence": 1}, "drafts": 3}
    with pytest.raises(ConfigError) as told:
        for_conversation(load(None), wrong)
    text = str(told.value)
    assert "endpoint.mode" in text
    assert "endpoint.silence: unknown key" in text
    assert "drafts" in text
