from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ondam.config import load
from ondam.errors import ConfigError
from ondam.speech.form import BrokenForm, Filled, Filling, Form, form_of

SLOTS = {"intent": {"enum": ["time", "weather"]}, "place": {"type": "string"}, "n": {"type": "integer"}}


def form(**more: Any) -> Form:
    schema = {"type": "object", "properties": SLOTS, "required": ["intent"]} | more
    return form_of(schema, instruction="Fill in {slots}", max_tokens=40)


def filled(text: str, *cuts: int) -> tuple[str, Filled]:
    filling = Filling(form())
    edges = [0, *sorted(cuts), len(text)]
    said = "".join(filling.feed(text[a:b]) for a, b in pairwise(edges))
    return said, filling.finish()


def test_say_comes_first_whatever_the_order_of_the_users_schema() -> None:
    made = form(properties=SLOTS | {"say": {"type": "string", "description": "short"}}, required=["n", "say"])
    assert list(made.schema["properties"]) == ["say", "intent", "place", "n"]
    assert made.schema["properties"]["say"] == {"type": "string", "description": "short"}
    assert made.schema["required"] == ["say", "n"]
    assert made.schema["additionalProperties"] is False
    assert form().schema["properties"]["say"] == {"type": "string"}
    assert form(additionalProperties=True).schema["additionalProperties"] is True


def test_what_is_said_is_bounded_by_the_users_schema_or_by_the_setting() -> None:
    schema = {"type": "object", "properties": SLOTS}
    bounded = form_of(schema, instruction="", max_tokens=9, longest_say=7)
    assert bounded.schema["properties"]["say"] == {"maxLength": 7, "type": "string"}
    own = SLOTS | {"say": {"type": "string", "maxLength": 3}}
    assert (
        form_of({**schema, "properties": own}, instruction="", max_tokens=9, longest_say=7).longest_say == 3
    )
    assert form().longest_say == 0

    for text, cut in (("1234567", True), ("123456", False), ("안녕하세요 🙂", True)):
        filling = Filling(bounded)
        assert (filling.feed(f'{{"say":"{text}'), filling.cut) == (text, False)
        filling.feed('","intent"')
        assert filling.cut is cut


def test_the_model_is_told_the_slots_and_not_what_it_says() -> None:
    told = json.dumps(SLOTS, separators=(",", ":"))
    assert form(properties=SLOTS | {"say": {"type": "string"}}).instruction == f"Fill in {told}"
    schema = {"type": "object", "properties": {"곳": {}}}
    assert form_of(schema, instruction="채우세요.", max_tokens=9).instruction == '채우세요. {"곳":{}}'


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ({}, "form_not_an_object"),
        ({"type": "array"}, "form_not_an_object"),
        ({"type": "object", "properties": []}, "form_not_an_object"),
        ({"type": "object", "properties": {}}, "form_without_slots"),
        ({"type": "object", "properties": {"say": {"type": "string"}}}, "form_without_slots"),
        ({"type": "object", "properties": {"say": {}, "a": {}}}, "form_say_not_text"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "form_schema_broken"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x.test/a.json"}}}, "form_reference_outside"),
        ({"type": "object", "properties": {"a": {"items": [{"$ref": "b.json"}]}}}, "form_schema_broken"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "b"}]}}}, "form_reference_outside"),
    ],
)
def test_what_is_no_form_is_refused_with_its_place(schema: dict[str, Any], code: str) -> None:
    with pytest.raises(BrokenForm) as refused:
        form_of(schema, instruction="", max_tokens=1)
    assert refused.value.code == code
    if code == "form_schema_broken":
        assert refused.value.facts["where"].startswith("$.properties.a.")


def test_a_reference_inside_the_schema_is_followed() -> None:
    made = form_of(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/two"}},
            "$defs": {"two": {"enum": [2]}},
        },
        instruction="",
        max_tokens=1,
    )
    for value, problem in ((2, None), (3, "form_not_kept")):
        filling = Filling(made)
        filling.feed(json.dumps({"say": "", "a": value}))
        assert filling.finish().problem == problem


ANSWER = '{\n "say": "안녕 \\ud83d\\ude42 \\"it\\\\is\\" \\u0041\\n3.14", "intent": "time", "place": "say"}'
SAID = '안녕 🙂 "it\\is" A\n3.14'


@pytest.mark.parametrize("size", range(1, 12))
def test_what_is_said_is_the_same_however_it_is_cut(size: int) -> None:
    said, end = filled(ANSWER, *range(size, len(ANSWER), size))
    assert said == SAID
    assert end == Filled({"intent": "time", "place": "say"})


def test_what_is_said_comes_as_soon_as_it_is_certain_and_its_end_as_soon_as_it_is_over() -> None:
    filling = Filling(form())
    steps = ['{"sa', 'y":"He', "llo \\", "ud83d\\u", "de4", '2!"', ',"intent":"say"}']
    assert [(filling.feed(step), filling.whole) for step in steps] == [
        ("", False),
        ("He", False),
        ("llo ", False),
        ("", False),
        ("", False),
        ("🙂!", True),
        ("", True),
    ]


@given(
    say=st.text(),
    place=st.text(),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 0, 2]),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_any_text_survives_any_cutting(
    say: str, place: str, ascii_only: bool, indent: int | None, cuts: list[int]
) -> None:
    answer = {"say": say, "intent": "time", "place": place, "n": -12}
    text = json.dumps(answer, ensure_ascii=ascii_only, indent=indent)
    said, end = filled(text, *(cut for cut in cuts if cut < len(text)))
    assert said == say
    assert end.slots == {"intent": "time", "place": place, "n": -12}


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(before=JSON, after=JSON, say=st.text(min_size=1), indent=st.sampled_from([None, 2]))
def test_no_beginning_of_an_answer_is_taken_for_a_broken_one(
    before: Any, after: Any, say: str, indent: int | None
) -> None:
    filling = Filling(form())
    text = json.dumps({"place": before, "say": say, "n": after}, indent=indent)
    said = ""
    for sign in text:
        assert not filling.whole or said == say
        said += filling.feed(sign)
    assert said == say


@pytest.mark.parametrize(
    ("text", "said", "problem"),
    [
        ('{"say":"Hi. The', "Hi. The", "form_incomplete"),
        ('{"say":"Hi.","intent":"ti', "Hi.", "form_incomplete"),
        ('{"say":"Hi.","intent":"tea"}', "Hi.", "form_not_kept"),
        ('{"say":"Hi."}', "Hi.", "form_not_kept"),
        ('{"say":"Hi.","intent":"time","n":"1"}', "Hi.", "form_not_kept"),
        ('{"say":"Hi.","intent":"time","more":1}', "Hi.", "form_not_kept"),
        ('{"say":"Hi.","intent":"time","n":NaN}', "Hi.", "form_incomplete"),
        ('{"say":7,"intent":"time"}', "", "form_not_kept"),
        ('{"intent":"time"}', "", "form_not_kept"),
        ('{"say":"Hi. \\ud83d","intent":"time"}', "Hi. ", "form_incomplete"),
        ("Hi. {it} is me.", "Hi. {it} is me.", "form_not_kept"),
        ("", "", "form_incomplete"),
        ("  \n", "", "form_incomplete"),
        ("[1]", "[1]", "form_not_kept"),
        ('{"say":"Hi.",,"intent":"time"}', "Hi.", "form_incomplete"),
        ('{"say" "Hi.","intent":"time"}', "", "form_incomplete"),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_an_answer_that_does_not_keep_to_the_form_is_said_and_has_no_slots(
    text: str, said: str, problem: str, size: int
) -> None:
    got, end = filled(text, *range(size, len(text), size))
    assert got == said
    assert (end.slots, end.problem) == (None, problem)


def test_slots_before_say_are_no_reason_to_say_nothing() -> None:
    said, end = filled('{"intent":"time","say":"Hi."}', 8, 22)
    assert (said, end.slots) == ("Hi.", {"intent": "time"})


def test_no_form_is_the_default_and_a_table_or_a_file_is_one(tmp_path: Any) -> None:
    assert load(None).form.form("en") is None
    schema = {"type": "object", "properties": {"intent": {"type": "string"}}}
    from_table = load(None, {"form": {"schema": schema, "max_tokens": 7}}).form.form("ko")
    file = tmp_path / "form.json"
    file.write_text(json.dumps(schema), "utf-8")
    from_file = load(None, {"form": {"schema": str(file)}}).form.form("en")
    assert from_table is not None
    assert from_file is not None
    assert from_table.schema == from_file.schema
    assert from_table.max_tokens == 7
    assert '{"intent":{"type":"string"}}' in from_table.instruction
    assert "say" in from_file.instruction


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("/nowhere/form.json", "form.schema: the file /nowhere/form.json cannot be read"),
        ({"type": "object"}, "form.schema: not the JSON Schema of an object"),
        (
            {"type": "object", "properties": {"a": {"type": "strin"}}},
            "form.schema: no JSON Schema at $.properties.a.type: 'strin' is not valid",
        ),
    ],
)
def test_a_form_that_is_none_stops_the_start_with_the_key_and_the_place(schema: object, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, {"form": {"schema": schema}})
    assert told in str(refused.value)
    assert refused.value.message("ko").text


def test_a_misspelt_key_is_told_the_name_that_the_file_has() -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, {"form": {"shema": ""}})
    assert 'form.shema: unknown key; did you mean "form.schema"?' in str(refused.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("```json\n", "\n```", "네."),
        ("\n```\n", "```\n", "네."),
        ("<think>음.</think>\n", "", "<think>음.</think>\n네."),
        ("<thinking>음.</thinking>```json\n", "```", "<thinking>음.</thinking>네."),
        ("\ufeff", "", "네."),
    ],
)
def test_an_object_in_a_fence_or_after_reasoning_is_still_a_form(before: str, after: str, said: str) -> None:
    text = before + '{"say": "네.", "intent": "weather"}' + after
    for size in (1, 3, len(text)):
        filling = Filling(form())
        chunks = (text[at : at + size] for at in range(0, len(text), size))
        assert "".join(map(filling.feed, chunks)) == said
        assert filling.finish() == Filled({"intent": "weather"})
