"""A Qwen3-ASR that weighs half a megabyte and hears the same sentence in everything.

    PYTHON-OF-THE-ENGINE -P qwen_asr.py FOLDER [--ends]

The encoder is random. The decoder's layers add nothing to the last token, and the head knows which word
follows which: without ``--ends`` the first word follows the last, for as long as the engine lets it go on.
Everything else (spectrum, processor, prompt, cache, generation) is the real package's.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AddedToken, Qwen2TokenizerFast, WhisperFeatureExtractor

# First: the package's own imports are those that the engine does without.
from ondam_engines.qwen_asr.package import Qwen3ASRModel  # noqa: F401

from qwen_asr.core.transformers_backend import (  # isort: skip
    Qwen3ASRConfig,
    Qwen3ASRForConditionalGeneration,
    Qwen3ASRProcessor,
)

WORDS = ("지금", " 몇", " 시예요?", " 온담,", " 불을", " 켜", " 줘.", " 고마워.")
END = "<|im_end|>"
BEGIN = "<asr_text>"
"""The prompt ends with it when the language is given."""

TEMPLATE = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>{% else %}{{ c.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

WIDTH = 64


def build(folder: Path, *, ends: bool = False) -> None:
    """Write the checkpoint into ``folder``, which may exist. ``ends``: say the sentence once, then stop."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tokenizer = _tokenizer(folder)
    extractor = WhisperFeatureExtractor(feature_size=128)
    processor = Qwen3ASRProcessor(extractor, tokenizer, chat_template=TEMPLATE)
    processor.save_pretrained(folder)
    model = Qwen3ASRForConditionalGeneration(_config(tokenizer))
    order = [BEGIN, *WORDS, END if ends else WORDS[0]]
    _teach(model, [tokenizer.convert_tokens_to_ids(word) for word in order])
    model.save_pretrained(folder)


def _tokenizer(folder: Path) -> Qwen2TokenizerFast:
    letters = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    (folder / "vocab.json").write_text(json.dumps(letters), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    tokenizer = Qwen2TokenizerFast(
        vocab_file=str(folder / "vocab.json"),
        merges_file=str(folder / "merges.txt"),
        unk_token=None,
        eos_token=END,
        pad_token="<|endoftext|>",
        extra_special_tokens={
            "audio_token": "<|audio_pad|>",
            "audio_bos_token": "<|audio_start|>",
            "audio_eos_token": "<|audio_end|>",
        },
    )
    tokenizer.add_special_tokens(
        {"additional_special_tokens": ["<|im_start|>"]}, replace_additional_special_tokens=False
    )
    tokenizer.add_tokens([AddedToken(word, special=False, normalized=False) for word in (BEGIN, *WORDS)])
    return tokenizer


def _config(tokenizer: Qwen2TokenizerFast) -> Qwen3ASRConfig:
    number = tokenizer.convert_tokens_to_ids
    return Qwen3ASRConfig(
        thinker_config={
            "audio_config": {
                "num_mel_bins": 128,
                "encoder_layers": 1,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 64,
                "d_model": 32,
                "output_dim": WIDTH,
                "downsample_hidden_size": 8,
                "n_window": 50,
                "n_window_infer": 800,
            },
            "text_config": {
                # Whole eights, as the real one is padded.
                "vocab_size": -(-len(tokenizer) // 8) * 8,
                "hidden_size": WIDTH,
                "intermediate_size": 128,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 1,
                "head_dim": 32,
                "max_position_embeddings": 4096,
                "rope_scaling": {
                    "rope_type": "default",
                    "mrope_section": [8, 4, 4],
                    "mrope_interleaved": True,
                },
            },
            "audio_token_id": number("<|audio_pad|>"),
            "audio_start_token_id": number("<|audio_start|>"),
        },
        support_languages=["English", "Korean"],
    )


def _teach(model: Qwen3ASRForConditionalGeneration, order: list[int]) -> None:
    """Let each token of ``order`` be followed by the next one, whatever was heard."""
    thinker = model.thinker.requires_grad_(False)
    for layer in thinker.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    embedding, head = thinker.get_input_embeddings().weight, thinker.lm_head.weight
    head.zero_()
    for axis, (token, follower) in enumerate(pairwise(order)):
        embedding[token] = torch.eye(WIDTH)[axis]
        head[follower, axis] = 1.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ends", action="store_true")
    asked = parser.parse_args()
    build(asked.folder, ends=asked.ends)
