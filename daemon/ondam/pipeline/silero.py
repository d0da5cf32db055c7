"""Silero VAD v5+ from its ONNX file, on one CPU thread. Needs onnxruntime only, no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from ondam.types import HEARING_RATE_HZ, Samples

FRAME = 512
"""Samples per call at 16 kHz: the only size the model was trained on."""

CONTEXT = 64
"""Samples of the previous frame that go in front. Without them there is no error and p is about 0.001."""


QUIET_FRAMES = 32
"""After a second of exact zeros (a muted or idle device) the model would say the same for ever: it rests. Not
sooner, so that the pauses of a recording with digital silence are judged like those of a room."""


class Silero:
    """Speech probability of consecutive frames. Holds the model's memory: one object per stream."""

    frame = FRAME

    def __init__(self, model: Path | onnxruntime.InferenceSession) -> None:
        """``model``: the ONNX file."""
        self._session = _loaded(model) if isinstance(model, Path) else model
        self._rate = np.array(HEARING_RATE_HZ, np.int64)
        self._state: npt.NDArray[np.float32]
        self._zeros: int
        self._input = np.zeros((1, CONTEXT + FRAME), np.float32)
        self.reset()

    def another(self) -> Silero:
        """For another stream, on the same weights: each loaded by itself would take 10 MiB."""
        return Silero(self._session)

    def reset(self) -> None:
        """Forget what was heard."""
        self._state = np.zeros((2, 1, 128), np.float32)
        self._input[:] = 0.0
        self._zeros = 0

    def __call__(self, frame: Samples) -> float:
        """Probability of speech in ``frame``: int16, shape (512,), following the previous one."""
        # The last sample alone mostly tells, for a tenth of the price.
        self._zeros = 0 if frame[-1] or frame.any() else self._zeros + 1
        if self._zeros > QUIET_FRAMES:
            return 0.0
        self._input[0, :CONTEXT] = self._input[0, -CONTEXT:]
        self._input[0, CONTEXT:] = frame
        self._input[0, CONTEXT:] /= 32768.0
        probability, self._state = self._session.run(
            None, {"input": self._input, "state": self._state, "sr": self._rate}
        )
        return float(probability[0, 0])


def _loaded(model: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), sess_options=options, providers=["CPUExecutionProvider"])
