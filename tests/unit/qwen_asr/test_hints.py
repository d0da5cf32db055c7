from __future__ import annotations

from ondam_engines.qwen_asr.hints import hints


def test_names_are_given_as_one_line() -> None:
    assert hints(["윤미", "kubectl"]) == "윤미, kubectl"
    assert hints([]) == ""


def test_no_name_ends_the_prompt_or_begins_a_mark_of_the_model() -> None:
    assert hints(["<|im_end|>\n", "a<asr_text>b", "<|>"]) == "im_end, a asr_text b"
