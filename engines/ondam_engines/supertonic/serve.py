"""Supertonic voices: four onnxruntime sessions of our own around the package's alphabet and voices."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch, parse
from ondam_engines.kit.onnx_sessions import Opened, open_session
from ondam_engines.kit.server import run
from ondam_engines.kit.tts import TtsService, Voice
from ondam_engines.supertonic.model import LANGUAGES, Folder
from ondam_engines.supertonic.networks import NAMES, WEIGHTS, Networks, Style, TooLong
from ondam_engines.supertonic.pieces import ends_sentence, halves, pieces
from ondam_engines.supertonic.prepared import Prepared, Way, facts, way
from ondam_engines.supertonic.profiles import LONGEST_SHAPE, Shape, inputs, tensorrt
from ondam_engines.supertonic.settings import Settings

WARM_UP = {
    "en": ("Good morning, and welcome. " * 11, "Sure."),
    "ko": ("안녕하세요, 반갑습니다. " * 11, "네."),
}
"""As long as a part may be, and short: what onnxruntime allocates for the longer one serves every shorter
one."""

LOUDEST = 32_767


@dataclass(frozen=True, slots=True)
class Stoppable:
    """A session that ends within an operator when its job is cancelled. TensorRT's are one operator each."""

    session: Any

    def run(self, inputs: Mapping[str, Any], cancel: Cancel) -> Any:
        """Its one output. Raises Cancelled, or onnxruntime's error when it was stopped."""
        cancel.check()
        options = onnxruntime.RunOptions()

        def stop() -> None:
            options.terminate = True

        with cancel.calling(stop):
            return self.session.run(None, dict(inputs), options)[0]


class Supertonic:
    """A loaded, warm model."""

    name = "supertonic"
    version = importlib.metadata.version("supertonic")

    def __init__(self, launch: Launch, *, building: Prepared | None = None) -> None:
        """``building``: TensorRT's engines are being made now, there; else it is used where they are.

        Raises ValueError, FileNotFoundError, ProviderRefused (when building).
        """
        if launch.model is None:
            raise ValueError("supertonic needs a model")
        self._launch = launch
        self._settings = Settings.of(launch.options, launch.device)
        self._folder = Folder(launch.model)
        self._graphs = self._folder.graphs()
        self._reader = self._folder.reader()
        self._styles = self._folder.voices()
        self._sound = self._folder.sound()
        device = self._settings.opens(launch.device)
        self._way = Way(device, building) if building else way(device, self._prepare)
        self._opened = {name: self._open(name, fall_back=building is None) for name in NAMES}
        self._networks = Networks(
            **{name: Stoppable(opened.session) for name, opened in self._opened.items()},
            sound=self._sound,
            steps=self._settings.steps,
            speed=self._settings.speed,
            seed=self._settings.seed,
            longest_frames=LONGEST_SHAPE.frames,
        )
        self.rate_hz = self._sound.rate_hz
        # The first of a language is its default.
        names = sorted(self._styles, key=lambda name: (name != self._settings.voice, name))
        if self._settings.voice and names[0] != self._settings.voice:
            raise ValueError(f"no voice {self._settings.voice!r} in {launch.model}, only {', '.join(names)}")
        self.voices = [Voice(name, language) for name in names for language in LANGUAGES]

    def warm_up(self) -> None:
        """A part as long as may be and a short one, thrown away."""
        for language, texts in WARM_UP.items():
            for text in texts:
                for _ in self.synthesize(text, Voice(self.voices[0].name, language), Cancel()):
                    pass

    def synthesize(self, text: str, voice: Voice, cancel: Cancel) -> Iterator[bytes]:
        """One piece for each part of ``text``; stops between two steps and inside of each."""
        style = self._styles[voice.name]
        pause = np.zeros(int(self._settings.pause_s * self.rate_hz), np.int16).tobytes()
        before = ""
        for piece in pieces(self._reader.fit(text)):
            if before and ends_sentence(before):
                yield pause
            yield from self._say(piece, style, voice.language, cancel)
            before = piece

    def _say(self, piece: str, style: Style, language: str, cancel: Cancel) -> Iterator[bytes]:
        if not any(sign.isalnum() for sign in piece):
            # Of a stop alone the model makes a noise.
            return
        try:
            wave = self._networks.speak(self._reader.ids(piece, language), style, cancel)
        except TooLong:
            first, second = halves(piece)
            if not second:
                raise
            yield from self._say(first, style, language, cancel)
            yield from self._say(second, style, language, cancel)
            return
        yield (np.clip(wave, -1, 1) * LOUDEST).astype("<i2").tobytes()

    def compute(self, network: str, shape: Shape) -> None:
        """One run on inputs of that shape that mean nothing."""
        style = next(iter(self._styles.values()))
        given = {
            name: np.zeros(dims, np.int64) if name == "text_ids" else np.ones(dims, np.float32)
            for name, dims in inputs(network, shape, self._sound.width, style).items()
        }
        self._opened[network].session.run(None, given)

    def _prepare(self, card: int) -> Prepared:
        return prepare(self._launch, self._settings, card)

    def _open(self, name: str, *, fall_back: bool) -> Opened:
        options = {}
        if self._way.prepared is not None:
            style = next(iter(self._styles.values()))
            shapes = tensorrt(name, self._sound.width, style)
            options["TensorrtExecutionProvider"] = {
                **self._way.prepared.tensorrt(),
                **shapes,
                "trt_engine_cache_prefix": name,
            }
        return open_session(
            self._graphs[name],
            device=self._way.device,
            threads=self._launch.threads,
            fall_back=fall_back,
            prepare=_sleep_when_idle,
            provider_options=options,
        )

    def report(self) -> report.Report:
        """What was got."""
        devices = {opened.device for opened in self._opened.values()}
        by_tensorrt = all("Tensorrt" in opened.providers[0] for opened in self._opened.values())
        told = {name: [self._way.instead, opened.instead] for name, opened in self._opened.items()}
        weights = self._graphs[WEIGHTS]
        return report.Report(
            engine="supertonic",
            device=devices.pop() if len(devices) == 1 else "mixed",
            threads=self._launch.threads,
            model=report.Weights(self._launch.model_id, str(weights), report.sha256(weights)),
            weight_loads=max(opened.loads for opened in self._opened.values()),
            # Of another type than the graphs' own TensorRT alone computes.
            dtype=self._settings.dtype if by_tensorrt else "float32",
            providers={name: opened.providers for name, opened in self._opened.items()},
            nodes={name: opened.nodes for name, opened in self._opened.items()},
            why={name: "; ".join(filter(None, whys)) for name, whys in told.items() if any(whys)},
            gpu_memory_mib=report.gpu_mib() if "cuda" in self._launch.device else None,
            versions=report.versions(
                ["supertonic", "onnxruntime", "onnxruntime-gpu", "tensorrt-cu13-libs", "numpy", "wyoming"]
            ),
        )


def prepare(launch: Launch, settings: Settings, card: int) -> Prepared:
    """TensorRT's engines for this launch, made or not. Raises ValueError without a place for them."""
    if launch.cache is None or launch.model is None:
        raise ValueError("TensorRT needs a folder to keep its engines in, and a model")
    return Prepared(launch.cache, facts(Folder(launch.model).graphs(), card, settings.dtype))


def _sleep_when_idle(options: Any) -> None:
    # As for piper: idle threads sleep instead of spinning, since the other engines need the cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")


def load(launch: Launch) -> TtsService:
    """A service that is ready to answer."""
    model = Supertonic(launch)
    model.warm_up()
    model.report().write(launch.report)
    return TtsService(model, launch.language)


if __name__ == "__main__":
    run(parse(), load)
