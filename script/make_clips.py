#!/usr/bin/env python3
"""Speaks the English questions of clips.toml that have no file yet, with the voice that Ondam ships with.

    ONDAM_HOME=… .venv/bin/python script/make_clips.py

Piper's environment and the model ``joe`` must be there (``ondam demo`` sees to that). The voice's noise is
off, so that the same words make the same file. Around them is 0.4 s of a quiet room as a microphone hears it:
-72 dB, the same for every file.
"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import numpy as np

from ondam.audio.resample import resampled
from ondam.audio.wav import write_wav
from ondam.places import places
from ondam.types import HEARING_RATE_HZ, Audio

CLIPS = Path(__file__).parent.parent / "daemon/ondam/measure/clips"

ROOM_S = 0.4
ROOM_LEVEL = 8.0
"""Samples' standard deviation."""

SPEAK = """
import sys
from piper import PiperVoice, SynthesisConfig
voice = PiperVoice.load(sys.argv[1])
how = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)
for chunk in voice.synthesize(sys.argv[2], how):
    sys.stdout.buffer.write(chunk.audio_int16_bytes)
print(voice.config.sample_rate, file=sys.stderr)
"""


def spoken(text: str) -> Audio:
    python = places().environments / "piper" / "bin" / "python"
    model = next((places().models / "joe").glob("*.onnx"))
    done = subprocess.run([str(python), "-P", "-c", SPEAK, str(model), text], check=True, capture_output=True)
    return Audio(np.frombuffer(done.stdout, "<i2").astype(np.int16), int(done.stderr.split()[-1]))


def in_a_room(speech: Audio) -> Audio:
    voice = resampled(speech, HEARING_RATE_HZ).samples.astype(np.float64)
    around = np.zeros(round(ROOM_S * HEARING_RATE_HZ))
    heard = np.concatenate([around, voice, around])
    heard += np.random.default_rng(0).normal(0.0, ROOM_LEVEL, len(heard))
    return Audio(np.clip(np.round(heard), -32768, 32767).astype(np.int16), HEARING_RATE_HZ)


def main() -> None:
    for name, text in tomllib.loads((CLIPS / "clips.toml").read_text("utf-8"))["en"].items():
        path = CLIPS / "en" / name
        if not path.exists():
            write_wav(path, in_a_room(spoken(text)))
            print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
