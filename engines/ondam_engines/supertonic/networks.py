"""The four networks in their order: how long it lasts, what it says, noise made into sound step by step,
samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ondam_engines.kit.cancel import Cancel

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

NAMES = ("duration_predictor", "text_encoder", "vector_estimator", "vocoder")
"""Sessions, and files ``onnx/NAME.onnx``."""

WEIGHTS = "vector_estimator"
"""By far the largest; its hash stands for all four."""


class Network(Protocol):
    """One session that can be stopped."""

    def run(self, inputs: Mapping[str, Any], cancel: Cancel) -> Any:
        """Its one output. Raises Cancelled."""


class TooLong(Exception):
    """The text would last longer than the networks are prepared for; half of it may not."""


@dataclass(frozen=True, slots=True)
class Sound:
    """Of ``tts.json``: how many samples a frame of the latent is, and how wide it is."""

    rate_hz: int
    frame: int
    """Samples of one frame: ``base_chunk_size`` × ``chunk_compress_factor``."""
    width: int
    """Numbers of one frame: ``latent_dim`` × ``chunk_compress_factor``."""

    def frames(self, samples: int) -> int:
        """How many hold so many samples; at least one."""
        return max(1, -(-samples // self.frame))


@dataclass(frozen=True, slots=True)
class Style:
    """A voice."""

    ttl: Floats
    """(1, 50, 256), how it sounds."""
    dp: Floats
    """(1, 8, 16), how quickly it speaks."""


@dataclass(frozen=True, slots=True)
class Networks:
    """All four, and how they are used."""

    duration_predictor: Network
    text_encoder: Network
    vector_estimator: Network
    vocoder: Network
    sound: Sound
    steps: int
    """Denoising steps: more sound better and take longer."""
    speed: float
    """1.0: as the model predicts."""
    seed: int
    longest_frames: int
    """TooLong beyond."""

    def speak(self, ids: Ids, style: Style, cancel: Cancel) -> Floats:
        """Samples between -1 and 1, exactly as many as the predicted duration has.

        ``ids``: (1, n), the text as the model's alphabet numbers it. Stops between two steps and inside of
        each. The same ids and style give the same samples. Raises TooLong, Cancelled.
        """
        known = np.ones((1, 1, ids.shape[1]), np.float32)
        predicted = self.duration_predictor.run(
            {"text_ids": ids, "style_dp": style.dp, "text_mask": known}, cancel
        )
        seconds = float(np.asarray(predicted).reshape(-1)[0]) / self.speed
        if not np.isfinite(seconds):
            raise ValueError(f"the network predicted a duration of {seconds} s")
        # The package computes the frames in 32-bit floats once and in whole numbers once, which differ where
        # a duration ends at a frame.
        samples = max(0, int(self.sound.rate_hz * seconds))
        frames = self.sound.frames(samples)
        if frames > self.longest_frames:
            raise TooLong(f"{frames} frames are over {self.longest_frames}")
        text = self.text_encoder.run({"text_ids": ids, "style_ttl": style.ttl, "text_mask": known}, cancel)
        latent = self.noise(frames)
        inputs = {
            "text_emb": text,
            "style_ttl": style.ttl,
            "text_mask": known,
            "latent_mask": np.ones((1, 1, frames), np.float32),
            "total_step": np.array([self.steps], np.float32),
        }
        for step in range(self.steps):
            cancel.check()
            now = {"noisy_latent": latent, "current_step": np.array([step], np.float32)}
            latent = self.vector_estimator.run(inputs | now, cancel)
        wave: Floats = np.asarray(self.vocoder.run({"latent": latent}, cancel), np.float32).reshape(-1)
        # Whole frames come out; what is behind the end is not part of the speech.
        return wave[:samples]

    def noise(self, frames: int) -> Floats:
        """(1, width, frames), drawn anew from the seed each time, so that no sentence depends on the one
        before."""
        drawn = np.random.default_rng(self.seed).standard_normal((frames, self.sound.width), np.float32)
        return np.ascontiguousarray(drawn.T)[None]
