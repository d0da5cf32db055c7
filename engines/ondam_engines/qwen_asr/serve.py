"""Qwen3-ASR through its own package and PyTorch."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

import numpy as np
import torch

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.server import run
from ondam_engines.kit.stt import Heard, SttService
from ondam_engines.kit.torch_modules import LayerStop, dtype_name, eager_report
from ondam_engines.qwen_asr.hints import hints
from ondam_engines.qwen_asr.languages import NAMES, WITHOUT_SPACES
from ondam_engines.qwen_asr.package import Qwen3ASRModel, split_audio_into_chunks

RATE_HZ = 16_000

SHORTEST_S = 0.5
"""Shorter sound is filled up with silence, as the package's authors do; its spectrum has no fewer than 400
samples."""

WARM_UP_S = 4
"""As long as a usual utterance."""

TOKENS_PER_S = 20
TOKENS_SPARE = 16
"""No one speaks more tokens a second: quick Korean is 8 syllables of 2. Bounds what a loop costs."""


class QwenAsr:
    """A loaded, warm Qwen3-ASR."""

    name = "qwen3-asr"
    rate_hz = RATE_HZ
    version = importlib.metadata.version("qwen-asr")
    languages: Sequence[str] = tuple(NAMES)

    def __init__(self, launch: Launch) -> None:
        if launch.model is None:
            raise ValueError("qwen_asr needs a model")
        self._launch = launch
        self._window_s: float = launch.options["window_s"]
        torch.set_num_threads(launch.threads)
        torch.set_num_interop_threads(1)
        self._loads = Loads()
        self._model = self._loads.counted(Qwen3ASRModel.from_pretrained)(
            str(launch.model),
            dtype=dtype_name(launch.options["dtype"]),
            device_map=launch.device,
            local_files_only=True,
        )
        thinker = self._model.model.thinker
        self._parts = {"encoder": thinker.audio_tower, "decoder": thinker.model, "head": thinker.lm_head}
        self._stop = LayerStop(self._parts.values())
        # Greedy, whatever the checkpoint says: the same audio gives the same text.
        how = thinker.generation_config
        how.do_sample = False
        how.temperature = how.top_p = how.top_k = None
        how.pad_token_id = self._model.processor.tokenizer.pad_token_id

    def warm_up(self) -> None:
        """The spectrum, the encoder and the decoder once, on noise."""
        language = self._launch.language if self._launch.language in NAMES else "en"
        noise = np.random.default_rng(0).normal(0, 300, RATE_HZ * WARM_UP_S).astype(np.int16)
        self.transcribe(noise.tobytes(), language, ["Ondam"], Cancel())

    def transcribe(self, samples: bytes, language: str, names: Sequence[str], cancel: Cancel) -> Heard:
        """The words in ``samples`` (16 kHz mono, 16-bit). Can stop before every layer of the model."""
        if not samples:
            return Heard("")
        audio = np.frombuffer(samples, np.int16).astype(np.float32) / 2**15
        if (missing := int(SHORTEST_S * RATE_HZ) - len(audio)) > 0:
            audio = np.pad(audio, (0, missing))
        self._stop.cancel = cancel
        texts = []
        # Parts keep the work between two stop points, and the memory, small; they meet where it is quiet.
        for part, _ in split_audio_into_chunks(audio, RATE_HZ, self._window_s):
            cancel.check()
            self._model.max_new_tokens = int(len(part) / RATE_HZ * TOKENS_PER_S) + TOKENS_SPARE
            heard = self._model.transcribe((part, RATE_HZ), context=hints(names), language=NAMES[language])
            texts.append(heard[0].text.strip())
        return Heard(("" if language in WITHOUT_SPACES else " ").join(filter(None, texts)))

    def report(self) -> report.Report:
        """What was got."""
        return eager_report(
            "qwen_asr",
            self._launch,
            self._parts,
            threads=torch.get_num_threads(),
            loads=self._loads.count,
            packages=["qwen-asr", "torch", "transformers", "wyoming"],
            context_length=self._model.model.thinker.config.text_config.max_position_embeddings,
        )


def load(launch: Launch) -> SttService:
    """A service that is ready to answer."""
    model = QwenAsr(launch)
    model.warm_up()
    model.report().write(launch.report)
    return SttService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
