"""SmolLM2's GGUF, which ``ondam models add`` fetches, as a checkpoint in BF16 that vLLM loads.

    python -P smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf FOLDER

Run by a Python with torch, transformers, accelerate and gguf.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(gguf: Path, folder: Path) -> None:
    """Write the checkpoint."""
    import torch
    from tokenizers import decoders, pre_tokenizers, processors
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    how = {"gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, **how, dtype=torch.bfloat16)
    model.to(torch.bfloat16).save_pretrained(folder)
    reader = AutoTokenizer.from_pretrained(gguf.parent, **how)
    # The file says "llama", which has its spaces otherwise; this model's own reads bytes, digit by digit.
    inside = reader.backend_tokenizer
    inside.normalizer = None
    digits = pre_tokenizers.Digits(individual_digits=True)
    inside.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    inside.post_processor = processors.ByteLevel(trim_offsets=False)
    inside.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=inside,
        eos_token=reader.eos_token,
        pad_token=reader.eos_token,
        chat_template=reader.chat_template,
    ).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
