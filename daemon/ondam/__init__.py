"""Ondam: a voice assistant that lives entirely on the user's own machine."""

import os

# Before anything can load onnxruntime, which reads it once; see docs/decisions/onnxruntime-telemetry.md.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.1.0"
