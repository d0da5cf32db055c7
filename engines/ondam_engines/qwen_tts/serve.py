"""Qwen3-TTS (12 Hz, built-in voices) through its own package and PyTorch."""

from __future__ import annotations

import importlib.metadata
import logging
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.server import run
from ondam_engines.kit.torch_modules import LayerStop, dtype_name, eager_report
from ondam_engines.kit.tts import TtsService, Voice
from ondam_engines.qwen_tts.languages import NAMES
from ondam_engines.qwen_tts.package import Qwen3TTSModel
from ondam_engines.qwen_tts.pieces import longest_s, pieces

_LOG = logging.getLogger(__name__)

WARM_UP = {"ko": "좋은 아침입니다. 오늘도 반갑습니다.", "en": "Good morning, and welcome."}

FADE_S = 0.02
"""Over which a voice that was cut fades out, so that it does not click."""


class QwenTts:
    """A loaded, warm Qwen3-TTS."""

    name = "qwen3-tts"
    version = importlib.metadata.version("qwen-tts")

    def __init__(self, launch: Launch) -> None:
        if launch.model is None:
            raise ValueError("qwen_tts needs a model")
        self._launch = launch
        torch.set_num_threads(launch.threads)
        torch.set_num_interop_threads(1)
        self._loads = Loads()
        self._model = self._loads.counted(Qwen3TTSModel.from_pretrained)(
            str(launch.model),
            dtype=dtype_name(launch.options["dtype"]),
            device_map=launch.device,
            local_files_only=True,
        )
        talker, codec = self._model.model.talker, self._model.model.speech_tokenizer
        talker.generation_config.pad_token_id = talker.config.codec_pad_id
        predictor = talker.code_predictor
        self._parts = {"talker": talker.model, "predictor": predictor, "codec": codec.model.decoder}
        self._stop = LayerStop(self._parts.values())
        self.rate_hz: int = codec.get_output_sample_rate()
        self._frame: int = codec.get_decode_upsample_rate()
        speakers = self._model.get_supported_speakers() or []
        if not speakers:
            raise ValueError(f"{launch.model} has no built-in voices: it must be a CustomVoice model")
        self.voices: Sequence[Voice] = list(
            _voices(self._model.get_supported_languages() or [], speakers, launch)
        )

    def warm_up(self) -> None:
        """One synthesis, thrown away."""
        language = self._launch.language if self._launch.language in WARM_UP else "en"
        voice = next((voice for voice in self.voices if voice.language == language), self.voices[0])
        for _ in self.synthesize(WARM_UP[language], voice, Cancel()):
            pass

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """One part for each piece of ``text``, whole: the package gives nothing before.

        Stops before every layer. The same text sounds the same, whatever was said before.
        """
        self._stop.cancel = cancel
        # "<|" would begin one of the model's own marks.
        for piece in pieces(text.replace("<|", "< |")):
            cancel.check()
            most = math.ceil(longest_s(piece) * self.rate_hz / self._frame)
            torch.manual_seed(self._launch.options["seed"])
            sounds, _ = self._model.generate_custom_voice(
                piece,
                speaker=voice.name,
                language=NAMES[voice.language],
                instruct=self._launch.options["manner"] or None,
                max_new_tokens=most,
            )
            yield self._samples(sounds[0], most).tobytes()

    def _samples(self, sound: npt.NDArray[np.float32], most: int) -> npt.NDArray[np.int16]:
        """As 16-bit numbers; faded out where the model did not end by itself."""
        # The last token has no frame of its own: it is the stop token, or was never spoken.
        if len(sound) >= (most - 1) * self._frame:
            sound = sound[: most * self._frame].copy()
            fade = min(len(sound), int(FADE_S * self.rate_hz))
            sound[len(sound) - fade :] *= np.linspace(1.0, 0.0, fade, dtype=np.float32)
            _LOG.warning("no stop token: cut after %.1f s", len(sound) / self.rate_hz)
        return (np.clip(sound, -1.0, 1.0) * (2**15 - 1)).astype(np.int16)

    def report(self) -> report.Report:
        """What was got."""
        return eager_report(
            "qwen_tts",
            self._launch,
            self._parts,
            threads=torch.get_num_threads(),
            loads=self._loads.count,
            packages=["qwen-tts", "torch", "transformers", "wyoming"],
        )


def _voices(languages: Sequence[str], speakers: Sequence[str], launch: Launch) -> Iterator[Voice]:
    """Every speaker speaks every language; the one that was chosen for a language comes first in it."""
    for tag, name in NAMES.items():
        if name in languages:
            wanted = launch.options.get(f"voice_{tag}", "").lower()
            if wanted and wanted not in speakers:
                raise ValueError(f"no voice {wanted!r} here, only {', '.join(speakers)}")
            for speaker in dict.fromkeys([wanted or speakers[0], *speakers]):
                yield Voice(speaker, tag)


def load(launch: Launch) -> TtsService:
    """A service that is ready to answer."""
    model = QwenTts(launch)
    model.warm_up()
    model.report().write(launch.report)
    return TtsService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
