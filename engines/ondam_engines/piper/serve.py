"""Piper voices (VITS) through piper-tts and onnxruntime."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from piper import PiperVoice, SynthesisConfig
from piper.config import PiperConfig

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.loads import Loads
from ondam_engines.kit.server import run
from ondam_engines.kit.tts import TtsService, Voice
from ondam_engines.piper.pieces import pieces

SILENCE = 2**15 // 200
"""-46 dB: below this nothing is heard in front of a voice. 10 ms of it are kept, for soft onsets."""

WARM_UP = "Good morning, and welcome. Sure."
"""A longer and a short sentence: what onnxruntime allocates for the longer one serves every shorter one."""


class StoppableSession:
    """An onnxruntime session that ends within milliseconds when its job is cancelled.

    Piper calls ``run`` without options; this is the only way to give it some.
    """

    def __init__(self, path: Path, providers: Sequence[str], threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Idle threads sleep instead of spinning: that costs 3 to 7 ms a clause on a quiet machine, and saves
        # far more when the other engines need the cores.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(path), options, providers=list(providers))
        self.cancel = Cancel()

    @property
    def providers(self) -> list[str]:
        """What the session really has, which may be less than was asked."""
        return list(self._session.get_providers())

    def run(self, outputs: Sequence[str] | None, inputs: dict[str, Any]) -> list[Any]:
        """As ``onnxruntime.InferenceSession.run``. Raises onnxruntime's error when it was stopped."""
        self.cancel.check()
        options = onnxruntime.RunOptions()

        def stop() -> None:
            options.terminate = True

        with self.cancel.calling(stop):
            return list(self._session.run(outputs, inputs, options))


class Piper:
    """A loaded, warm voice."""

    name = "piper"
    version = importlib.metadata.version("piper-tts")

    def __init__(self, launch: Launch) -> None:
        if launch.model is None:
            raise ValueError("piper needs a model")
        self._launch = launch
        self._weights = launch.model
        config = json.loads(launch.model.with_name(f"{launch.model.name}.json").read_text(encoding="utf-8"))
        provider = "CPUExecutionProvider" if launch.device == "cpu" else "CUDAExecutionProvider"
        self._loads = Loads()
        self._session = self._loads.counted(StoppableSession)(launch.model, [provider], launch.threads)
        self._voice = PiperVoice(session=self._session, config=PiperConfig.from_dict(config))
        # Quicker speech has shorter phonemes.
        length = self._voice.config.length_scale / launch.options["speed"]
        self._how = SynthesisConfig(length_scale=length, volume=launch.options["volume"])
        self.rate_hz: int = self._voice.config.sample_rate
        self.voices = [Voice(launch.model.stem, self._voice.config.espeak_voice.split("-")[0])]

    def warm_up(self) -> None:
        """One synthesis, thrown away."""
        for _ in self.synthesize(WARM_UP, self.voices[0], Cancel()):
            pass

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """One piece for each sentence of ``text``; stops within one operator of the network."""
        self._session.cancel = cancel
        # "[[" would begin raw phonemes.
        begun = False
        for piece in pieces(text.replace("[[", "[ [")):
            for chunk in self._voice.synthesize(piece, self._how):
                samples = chunk.audio_int16_array
                yield (samples if begun else self._from_onset(samples)).tobytes()
                begun = True

    def _from_onset(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
        """Without the silence that VITS puts in front, about 50 ms; people wait for the first sound."""
        loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > SILENCE)
        return samples[max(0, int(loud[0]) - self.rate_hz // 100) :] if len(loud) else samples

    def report(self) -> report.Report:
        """What was got."""
        providers = self._session.providers
        return report.Report(
            engine="piper",
            device="cpu" if providers[0] == "CPUExecutionProvider" else self._launch.device,
            threads=self._launch.threads,
            model=report.Weights(self._launch.model_id, str(self._weights), report.sha256(self._weights)),
            weight_loads=self._loads.count,
            dtype="float32",
            providers={"voice": providers},
            versions=report.versions(["piper-tts", "onnxruntime", "onnxruntime-gpu", "wyoming"]),
        )


def load(launch: Launch) -> TtsService:
    """A service that is ready to answer."""
    model = Piper(launch)
    model.warm_up()
    model.report().write(launch.report)
    return TtsService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
