"""Which chat template a model is asked with."""

from __future__ import annotations

from pathlib import Path

from ondam_engines.llama_cpp.template import CHATML, chat_template


def test_the_models_own_template_is_used() -> None:
    assert chat_template({"tokenizer.chat_template": "own"}, "") == "own"


def test_a_chosen_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("골라 쓴 것", encoding="utf-8")
    assert chat_template({"tokenizer.chat_template": "own"}, str(file)) == "골라 쓴 것"


def test_a_model_without_a_template_is_asked_in_chatml() -> None:
    assert chat_template({"general.name": "x"}, "") == CHATML
    assert "<|im_start|>assistant" in CHATML
