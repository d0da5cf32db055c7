"""Which keys two profiles differ in, and whether one daemon can be both."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ondam.cli.bench.profile import flattened, read_profile, toml, two_ways
from ondam.errors import ConfigError

NO_FILE = Path("/nonexistent/config.toml")

SILENCE = {"endpoint": {"mode": "silence"}}


@pytest.mark.parametrize("name", ["", "shipped"])
def test_shipped_changes_nothing(name: str) -> None:
    assert read_profile(name) == {}


def test_a_profile_is_a_file_or_a_line(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text('[endpoint]\nmode = "silence"\n', "utf-8")
    assert read_profile(str(file)) == read_profile("endpoint.mode=silence") == SILENCE
    with pytest.raises(ConfigError):
        read_profile(str(tmp_path / "absent.toml"))
    with pytest.raises(ConfigError):
        read_profile("endpoint")


def test_keys_of_a_conversation_need_one_daemon() -> None:
    base = {"language": "en"}
    sides = two_ways(NO_FILE, base, ("shipped", {}), ("b", SILENCE | {"drafts": {"most_per_turn": 0}}))
    assert not sides.apart
    assert sides.differ == ("drafts.most_per_turn", "endpoint.mode")
    assert sides.a.conversation is None and sides.b is not None
    assert sides.b.conversation == SILENCE | {"drafts": {"most_per_turn": 0}}
    assert sides.a.settings == sides.b.settings == {}


def test_what_both_want_of_the_daemon_is_its_own_setting() -> None:
    both = {"llm": {"max_tokens": 20}}
    sides = two_ways(NO_FILE, {}, ("a", both), ("b", both | SILENCE))
    assert not sides.apart and sides.b is not None
    assert sides.a.settings == sides.b.settings == {"llm.max_tokens": "20"}
    assert sides.b.config.llm.max_tokens == 20
    assert sides.b.config.endpoint.mode == "silence"


def test_other_keys_need_two_daemons_and_say_which() -> None:
    sides = two_ways(NO_FILE, {}, ("shipped", {}), ("b", {"llm": {"max_tokens": 20}} | SILENCE))
    assert sides.apart and sides.b is not None
    assert sides.differ == ("endpoint.mode", "llm.max_tokens")
    assert dict(sides.b.settings) == {"llm.max_tokens": "20", "endpoint.mode": '"silence"'}
    assert sides.b.conversation is None


def test_the_same_profile_twice_differs_in_nothing() -> None:
    sides = two_ways(NO_FILE, {}, ("x", SILENCE), ("x", SILENCE))
    assert (sides.differ, sides.apart) == ((), False)
    assert sides.b is not None and sides.a.conversation == sides.b.conversation == SILENCE


def test_a_key_that_is_wrong_is_told_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="endpiont"):
        two_ways(NO_FILE, {}, ("", {}), ("b", {"endpiont": {"mode": "silence"}}))


@pytest.mark.parametrize(
    "value",
    ["plain", 'quotes " and \\ and\nlines\t\x7f 온담', True, False, 3, 0.5, ["a", 1], {"a": {"b": [True]}}],
)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    assert tomllib.loads(f"value = {toml(value)}") == {"value": value}


def test_dotted_keys_name_every_value() -> None:
    assert dict(flattened({"a": {"b": 1, "c": {"d": 2}}, "e": {}})) == {"a.b": 1, "a.c.d": 2, "e": {}}


def test_a_list_keeps_its_commas() -> None:
    found = read_profile('stt.names=["Ada","Bo"],llm.max_tokens=20, drafts.at_fall=false')
    assert found == {"stt": {"names": ["Ada", "Bo"]}, "llm": {"max_tokens": 20}, "drafts": {"at_fall": False}}


@pytest.mark.parametrize("given", ["quick", "llm.max_tokens", "a,b"])
def test_what_is_no_profile_is_said_to_be_none(given: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_profile(given)
    assert raised.value.code == "bench_profile_unknown"


def test_each_side_tells_what_it_has_where_the_two_differ() -> None:
    sides = two_ways(
        NO_FILE, {}, ("", {}), ("b", {"llm": {"idle_timeout_s": 3.0, "url": "http://x/" + "y" * 90}})
    )
    assert sides.apart and sides.b is not None
    assert sides.differences(sides.a) == {"llm.idle_timeout_s": "10.0", "llm.url": '""'}
    told = sides.differences(sides.b)
    assert (told["llm.idle_timeout_s"], len(told["llm.url"])) == ("3.0", 16)
