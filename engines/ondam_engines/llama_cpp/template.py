"""Which chat template a model is asked with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""For a GGUF that carries none, as llama.cpp's own server does (llama-cpp-python would take Llama 2's)."""


def chat_template(metadata: Mapping[str, str], chosen: str) -> str:
    """Jinja text: of the file ``chosen`` when that is not empty, else the GGUF's own, else ChatML."""
    if chosen:
        return Path(chosen).read_text(encoding="utf-8")
    return metadata.get("tokenizer.chat_template", CHATML)
