"""Whisper through faster-whisper (CTranslate2), with a window as long as what was said."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from faster_whisper import WhisperModel

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.server import run
from ondam_engines.kit.stt import Heard, SttService

RATE_HZ = 16_000

SHORTEST_S = 0.1
"""Shorter audio is filled up with silence: the spectrum's first window needs 25 ms, a word needs more."""

FRAMES_PER_S = 100
"""Mel frames; Whisper hops by 10 ms."""

WARM_UP_S = 4
"""As long as a usual utterance."""

TOKENS_PER_S = 20
TOKENS_SPARE = 16
"""No one speaks more tokens a second: quick Korean is 8 syllables of 2. Bounds what a loop costs."""

MAX_TOKENS = 224
"""Of one window's text, as in Whisper's own decoder; half of the context, the rest is for the prompt."""

CONTEXT = 448

CUDA_LIBRARIES = {
    "cuda_nvrtc": ("libnvrtc.so.12",),
    "cublas": ("libcublasLt.so.12", "libcublas.so.12"),
    "cudnn": ("libcudnn.so.9",),
}
"""Of the packages nvidia-*-cu12, each after those it needs."""

BYTES_PER_S = 30
"""No one says more text a second, as UTF-8: 25 letters, or 9 syllables of Hangul and a space or two."""


@dataclass(slots=True)
class Pass:
    """What is known of the job that is being transcribed."""

    cancel: Cancel = field(default_factory=Cancel)
    features: Any = None
    """The window that is being decoded, as long as Whisper wants it."""
    window_s: float = 0.0
    """How much of it is speech."""
    trimmed: bool = False
    """Less than all of it was encoded."""
    decoded: list[tuple[int, float, float]] = field(default_factory=list)
    """Per window: tokens, mean log probability, no-speech probability."""


class TrimmedWhisper(WhisperModel):  # type: ignore[misc]  # faster_whisper ships no types
    """Encodes the speech and ``window_pad_s`` of nothing, where Whisper always encodes 30 s.

    Overridden are the two steps between which a window can be left: ``encode`` and
    ``generate_with_fallback``. See docs/decisions/window-trim.md for what the padding costs and saves.
    """

    def __init__(self, folder: Path, window_pad_s: float, **settings: Any) -> None:
        super().__init__(str(folder), local_files_only=True, **settings)
        self._window_pad_s = window_pad_s
        self.current = Pass()

    def encode(self, features: npt.NDArray[np.float32]) -> Any:
        """``features`` (mel bands, 3000) as faster-whisper pads them: with zeros, which no real frame is."""
        self.current.cancel.check()
        speech = int(np.flatnonzero(features.any(axis=0))[-1]) + 1
        self.current.features = features
        self.current.window_s = speech / FRAMES_PER_S
        # The encoder's first layer takes frames in pairs.
        window = -(-(speech + round(self._window_pad_s * FRAMES_PER_S)) // 2) * 2
        self.current.trimmed = window < features.shape[1]
        return super().encode(np.ascontiguousarray(features[:, :window]))

    def generate_with_fallback(self, encoded: Any, prompt: list[int], tokenizer: Any, options: Any) -> Any:
        """As faster-whisper does, but no longer than what was said can be; remembers how sure it was."""
        room = min(MAX_TOKENS, CONTEXT - len(prompt))
        most = min(int(self.current.window_s * TOKENS_PER_S) + TOKENS_SPARE, room)

        def decode(encoded: Any, temperatures: Sequence[float]) -> Any:
            self.current.cancel.check()
            return super(TrimmedWhisper, self).generate_with_fallback(
                encoded, prompt, tokenizer, replace(options, temperatures=temperatures, max_new_tokens=most)
            )

        def is_repetitive(decoded: Any) -> bool:
            return bool(decoded[3] > options.compression_ratio_threshold)

        def has_no_end(decoded: Any) -> bool:
            return len(decoded[0].sequences_ids[0]) >= most - 1

        def is_doubtful(decoded: Any) -> bool:
            result, avg_logprob = decoded[:2]
            silence = result.no_speech_prob > options.no_speech_threshold
            unsure = avg_logprob < options.log_prob_threshold and not silence
            said = len(tokenizer.decode(result.sequences_ids[0]).encode())
            # People do repeat themselves; but nobody does so faster than they can speak.
            loop = is_repetitive(decoded) and said > BYTES_PER_S * self.current.window_s
            return unsure or loop or has_no_end(decoded)

        first, *others = options.temperatures
        decoded = decode(encoded, [first])
        if self.current.trimmed and (is_repetitive(decoded) or has_no_end(decoded)):
            # It may go in circles, as Whisper does now and then in a window of a length that it was not
            # trained on; what is drawn there at higher temperatures is often no better.
            encoded = super().encode(self.current.features)
            decoded = decode(encoded, [first])
        if others and is_doubtful(decoded):
            # A loop is always sure of itself.
            tried = (decoded, decode(encoded, others))
            decoded = max(tried, key=lambda one: (not is_repetitive(one), one[1]))
        result, avg_logprob = decoded[:2]
        self.current.decoded.append((len(result.sequences_ids[0]), avg_logprob, result.no_speech_prob))
        return decoded


def load_cuda() -> None:
    """Load the environment's own cuBLAS and cuDNN.

    CTranslate2 looks for them by name when it first computes, where the system's loader looks, which is not
    where wheels put them; what is loaded already is found. Where they are not in the environment the system's
    are used, or CTranslate2 says which one it lacks.
    """
    nvidia = importlib.util.find_spec("nvidia")
    for folder in (nvidia.submodule_search_locations or ()) if nvidia else ():
        for package, names in CUDA_LIBRARIES.items():
            for library in (Path(folder, package, "lib", name) for name in names):
                if library.exists():
                    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


class Whisper:
    """A loaded, warm Whisper."""

    name = "faster-whisper"
    rate_hz = RATE_HZ
    version = importlib.metadata.version("faster-whisper")

    def __init__(self, launch: Launch) -> None:
        if launch.model is None:
            raise ValueError("faster_whisper needs a model")
        self._launch = launch
        self._folder = launch.model
        self._options = launch.options
        device, _, index = launch.device.partition(":")
        if device == "cuda":
            load_cuda()
        self._loads = Loads()
        self._model = self._loads.counted(TrimmedWhisper)(
            launch.model,
            launch.options["window_pad_s"],
            device=device,
            device_index=int(index or 0),
            compute_type=launch.options["compute_type"],
            cpu_threads=launch.threads,
        )
        self.languages: Sequence[str] = self._model.supported_languages

    def warm_up(self) -> None:
        """The spectrum, the encoder and the decoder once, on noise."""
        language = self._launch.language if self._launch.language in self.languages else self.languages[0]
        noise = np.random.default_rng(0).normal(0, 0.01, RATE_HZ * WARM_UP_S).astype(np.float32)
        # At one temperature: what noise is heard as never looks sure, and would be tried at each.
        segments, _ = self._model.transcribe(noise, language=language, beam_size=1, temperature=0.0)
        for _ in segments:
            pass

    def transcribe(self, samples: bytes, language: str, names: Sequence[str], cancel: Cancel) -> Heard:
        """The words in ``samples`` (16 kHz mono, 16-bit). Can stop before each encoding and each decoding."""
        if not samples:
            return Heard("", no_speech_prob=1.0)
        audio = np.frombuffer(samples, np.int16).astype(np.float32) / 2**15
        if (missing := int(SHORTEST_S * RATE_HZ) - len(audio)) > 0:
            audio = np.pad(audio, (0, missing))
        self._model.current = Pass(cancel)
        segments, _ = self._model.transcribe(
            audio,
            language=language,
            beam_size=self._options["beam_size"],
            best_of=self._options["best_of"],
            temperature=self._options["temperatures"],
            initial_prompt=self._options["initial_prompt"] or None,
            hotwords=", ".join(names) or None,
            # One window needs no timestamps; more than one is cut at them, so that no word is cut in two.
            without_timestamps=len(audio) <= 30 * RATE_HZ,
            # A window that went wrong must not lead the next one astray.
            condition_on_previous_text=False,
            vad_filter=False,
        )
        text = "".join(segment.text for segment in segments).strip()
        return self._heard(text, self._model.current.decoded)

    @staticmethod
    def _heard(text: str, decoded: list[tuple[int, float, float]]) -> Heard:
        if not decoded:
            return Heard(text)
        tokens = sum(count + 1 for count, _, _ in decoded)
        return Heard(
            text,
            # Speech anywhere is speech.
            no_speech_prob=min(no_speech for _, _, no_speech in decoded),
            avg_logprob=sum((count + 1) * logprob for count, logprob, _ in decoded) / tokens,
        )

    def report(self) -> report.Report:
        """What was got."""
        weights = self._folder / "model.bin"
        inner = self._model.model
        device = inner.device if inner.device == "cpu" else f"{inner.device}:{inner.device_index[0]}"
        return report.Report(
            engine="faster_whisper",
            device=device,
            threads=self._launch.threads,
            model=report.Weights(self._launch.model_id, str(weights), report.sha256(weights)),
            weight_loads=self._loads.count,
            dtype=inner.compute_type,
            quantization=self._options["compute_type"],
            gpu_memory_mib=report.gpu_mib() if device != "cpu" else None,
            versions=report.versions(["faster-whisper", "ctranslate2", "numpy", "wyoming"]),
        )


def load(launch: Launch) -> SttService:
    """A service that is ready to answer."""
    model = Whisper(launch)
    model.warm_up()
    model.report().write(launch.report)
    return SttService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
