"""A Qwen3-TTS that weighs two megabytes: talker, code predictor and 12 Hz codec, all random.

    PYTHON-OF-THE-ENGINE -P qwen_tts.py FOLDER

It speaks noise of a voice's loudness and never ends by itself, as the real one does in three requests of a
thousand: how long it speaks is how long the engine lets it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import EncodecFeatureExtractor, Qwen2TokenizerFast

# First: the package's own imports are those that the engine does without.
from ondam_engines.qwen_tts.package import Qwen3TTSModel  # noqa: F401

from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSConfig  # isort: skip
from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSForConditionalGeneration  # isort: skip
from qwen_tts.core.models.processing_qwen3_tts import Qwen3TTSProcessor  # isort: skip
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (  # isort: skip
    Qwen3TTSTokenizerV2Config,
)
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model  # isort: skip

SPEAKERS = ("ono_anna", "ryan", "sohee")
LANGUAGES = (
    "korean",
    "english",
    "chinese",
    "japanese",
    "german",
    "french",
    "russian",
    "portuguese",
    "spanish",
    "italian",
)

GROUPS = 2
"""Codes of one frame; the real one has 16."""
CODES = 64
MARKS = 1024
"""Numbers behind the codes that are no sound, as many as in the real one."""

LOUDNESS = 0.1
"""Root mean square, of 1.0."""

HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}


def build(folder: Path) -> None:
    """Write the checkpoint into ``folder``, which may exist."""
    codec = folder / "speech_tokenizer"
    codec.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tokenizer = _tokenizer(folder)
    Qwen3TTSProcessor(tokenizer=tokenizer).save_pretrained(folder)
    model = Qwen3TTSForConditionalGeneration(_config(tokenizer))
    with torch.no_grad():
        head = model.talker.codec_head.weight
        # So sure of one of its codes that the stop token, at 0, is never drawn.
        head.mul_(100)
        head[CODES] = 0
    model.save_pretrained(folder)
    _trim(folder / "config.json")
    sampling = {"do_sample": True, "top_k": 50, "top_p": 1.0, "temperature": 0.9, "repetition_penalty": 1.05}
    sub = {f"subtalker_{name}": sampling[name] for name in ("top_k", "top_p", "temperature")}
    sampling |= {**sub, "subtalker_dosample": True, "max_new_tokens": 2048}
    (folder / "generation_config.json").write_text(json.dumps(sampling), "utf-8")
    _codec().save_pretrained(codec)
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24_000).save_pretrained(codec)


def _tokenizer(folder: Path) -> Qwen2TokenizerFast:
    letters = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    (folder / "vocab.json").write_text(json.dumps(letters), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    tokenizer = Qwen2TokenizerFast(
        vocab_file=str(folder / "vocab.json"),
        merges_file=str(folder / "merges.txt"),
        unk_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    marks = ["<|im_start|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    return tokenizer


def _config(tokenizer: Qwen2TokenizerFast) -> Qwen3TTSConfig:
    number = tokenizer.convert_tokens_to_ids
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_code_groups": GROUPS}
    talker = {
        **sizes,
        **HEADS,
        "vocab_size": CODES + MARKS,
        "text_vocab_size": len(tokenizer) + 8,
        "text_hidden_size": 64,
        "rope_scaling": {
            "rope_type": "default",
            "type": "default",
            "mrope_section": [8, 4, 4],
            "interleaved": True,
        },
        "codec_eos_token_id": CODES,
        "codec_pad_id": CODES + 1,
        "codec_bos_id": CODES + 2,
        "codec_think_id": CODES + 3,
        "codec_nothink_id": CODES + 4,
        "codec_think_bos_id": CODES + 5,
        "codec_think_eos_id": CODES + 6,
        "spk_id": {name: CODES + 10 + place for place, name in enumerate(SPEAKERS)},
        "spk_is_dialect": dict.fromkeys(SPEAKERS, False),
        "codec_language_id": {name: CODES + 20 + place for place, name in enumerate(LANGUAGES)},
        "code_predictor_config": {**sizes, **HEADS, "vocab_size": CODES},
    }
    return Qwen3TTSConfig(
        talker_config=talker,
        speaker_encoder_config={},
        tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7",
        tts_model_type="custom_voice",
        im_start_token_id=number("<|im_start|>"),
        im_end_token_id=number("<|im_end|>"),
        tts_pad_token_id=number("<tts_pad>"),
        tts_bos_token_id=number("<tts_text_bos>"),
        tts_eos_token_id=number("<tts_text_eod>"),
    )


def _trim(path: Path) -> None:
    """What is saved of the speaker encoder holds fields that it does not take back."""
    config = json.loads(path.read_text("utf-8"))
    kept = {"enc_dim", "sample_rate"}
    config["speaker_encoder_config"] = {
        name: value for name, value in config["speaker_encoder_config"].items() if name in kept
    }
    path.write_text(json.dumps(config, indent=1), "utf-8")


def _codec() -> Qwen3TTSTokenizerV2Model:
    shared = {
        "hidden_size": 32,
        "codebook_size": CODES,
        "codebook_dim": 16,
        "num_quantizers": GROUPS,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 64,
    }
    encoder = {
        **shared,
        "num_filters": 4,
        "num_residual_layers": 1,
        "upsampling_ratios": [8, 6, 5, 4],
        "vector_quantization_hidden_dimension": 16,
        "num_semantic_quantizers": 1,
        "upsample_groups": 32,
    }
    decoder = {**shared, "latent_dim": 32, "decoder_dim": 32}
    codec = Qwen3TTSTokenizerV2Model(
        Qwen3TTSTokenizerV2Config(
            encoder_config=encoder, decoder_config=decoder, encoder_valid_num_quantizers=GROUPS
        )
    )
    codec.eval().requires_grad_(False)
    for name, values in (*codec.named_parameters(), *codec.named_buffers()):
        if name.endswith("embedding_sum"):
            values.normal_()
    _make_loud(codec)
    return codec


def _make_loud(codec: Qwen3TTSTokenizerV2Model) -> None:
    """Scale the last convolution so that any codes sound about as loud as a voice."""
    last = [module for module in codec.decoder.modules() if isinstance(module, torch.nn.Conv1d)][-1]
    if last.bias is not None:
        last.bias.zero_()
    last.weight.mul_(1e-3)  # far from where it is clipped
    sound = codec.decoder(torch.randint(0, CODES, (1, GROUPS, 50)))
    last.weight.mul_(LOUDNESS / sound.square().mean().sqrt())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
