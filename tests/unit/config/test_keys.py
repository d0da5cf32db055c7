"""When a change of a key counts, and who may see its value."""

from __future__ import annotations

from typing import Any

import pytest

from ondam.config import Config, load
from ondam.config.contradictions import LIMITS
from ondam.config.keys import COUNTS, changed, counts, flat, keys, nested, shown


def config(**overrides: Any) -> Config:
    return load(None, overrides)


def test_it_is_known_of_every_key_of_the_schema_when_it_counts_and_of_nothing_else() -> None:
    assert set(keys()) == set(COUNTS), "say in ondam/config/keys.py when a change of it counts"
    assert len(set(keys())) == len(keys())


def test_two_keys_that_limit_each_other_count_at_the_same_time() -> None:
    """Else one that was read anew could contradict one that was not."""
    assert {(counts(limit.key) == counts(limit.by)) for limit in LIMITS} == {True}


@pytest.mark.parametrize(
    ("key", "when"),
    [
        ("llm.max_tokens", "live"),
        ("engines.piper.speed", "engine"),
        ("metrics.listen", "restart"),
        ("a.key.of.a.later.version", "restart"),
    ],
)
def test_when_a_key_counts(key: str, when: str) -> None:
    assert counts(key) == when


def test_what_is_otherwise_is_told_by_key_down_to_an_engines_option() -> None:
    old = config(engines={"piper": {"speed": 1.1, "volume": 0.5}})
    new = config(language="ko", llm={"max_tokens": 9}, engines={"piper": {"speed": 1.2}})
    assert changed(old, new) == ("language", "llm.max_tokens", "engines.piper.speed", "engines.piper.volume")
    assert changed(old, old) == ()


def test_an_empty_table_of_an_engine_is_nothing() -> None:
    assert changed(config(), config(engines={"piper": {}})) == ()


def test_a_form_and_canned_answers_count_as_one_key_each() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    found = flat(config(form={"schema": schema}, canned=[{"match": ["hi"], "say": ["ho"]}]))
    assert found["form.schema"] == schema
    assert found["canned"][0]["say"] == ["ho"]
    assert not [key for key in found if key.startswith(("form.schema.", "canned."))]


def test_keys_become_the_tables_of_a_file() -> None:
    assert nested({"language": "ko", "llm.max_tokens": 9, "engines.piper.speed": 1.2}) == {
        "language": "ko",
        "llm": {"max_tokens": 9},
        "engines": {"piper": {"speed": 1.2}},
    }


def test_a_stranger_sees_numbers_and_choices_and_no_name_no_prompt_no_address_no_path() -> None:
    mine = config(
        language="ko",
        audio={"microphone": "Bora's headset"},
        listen={"name_en": "Jarvis", "mode": "push"},
        stt={"names": ["Kim Bora"]},
        llm={"url": "https://bora:hunter2@server/v1", "system_prompt_en": "You know Bora.", "max_tokens": 99},
        canned=[{"match": ["door"], "say": ["The code is 1234."]}],
        engines={"qwen_tts": {"voice": "bora", "temperature": 0.5}},
    )
    told = shown(mine)
    assert {told[key] for key in ("audio.microphone", "listen.name_en", "stt.names", "llm.url")} == {"(set)"}
    assert {told[key] for key in ("llm.system_prompt_en", "canned", "engines.qwen_tts.voice")} == {"(set)"}
    assert (told["language"], told["listen.mode"], told["llm.max_tokens"]) == ("ko", "push", 99)
    assert told["engines.qwen_tts.temperature"] == 0.5
    assert told["llm.system_prompt_ko"] == "(shipped)"
    assert set(told) == {*COUNTS, "engines.qwen_tts.voice", "engines.qwen_tts.temperature"} - {"engines"}
    for secret in ("bora", "hunter2", "1234", "jarvis"):
        assert secret not in repr(told).lower()
