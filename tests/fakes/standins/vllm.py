"""A Qwen3 of four megabytes with random weights, and a tokenizer of bytes: vLLM serves it, and it babbles.

Run by the engine's own Python: ``python -P vllm.py FOLDER``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TEMPLATE = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n"
    "{%- if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
"""As Qwen3's: thinking that is switched off is an empty block of thoughts, written by the template."""

HIDDEN, HEADS, KV_HEADS, HEAD, LAYERS, CONTEXT = 256, 4, 2, 64, 2, 8192
"""64 is the smallest head that vLLM's attention on a CPU is quick with."""


def tokenizer(folder: Path) -> int:
    """Write a byte-level tokenizer into ``folder``. Returns the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_only = Tokenizer(models.BPE({piece: n for n, piece in enumerate(alphabet)}, []))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bytes_only,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=TEMPLATE,
    )
    # No special tokens, as in Qwen3: a parser of reasoning reads them in the text.
    fast.add_tokens(["<think>", "</think>"])
    fast.save_pretrained(folder)
    return len(fast)


def build(folder: Path) -> None:
    """Write the whole checkpoint."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = tokenizer(folder)
    ids = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    end = next(token["id"] for token in ids if token["content"] == "<|im_end|>")
    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=-(-vocabulary // 64) * 64,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        eos_token_id=end,
        dtype="bfloat16",
    )
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
