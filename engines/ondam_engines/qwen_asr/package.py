"""qwen-asr without what it imports for other purposes than ours.

``nagisa`` (and dynet under it) cuts Japanese for time stamps, ``librosa`` (and numba, SciPy, scikit-learn)
and ``soundfile`` read files and change sample rates. See docs/decisions/torch.md.
"""

from __future__ import annotations

from ondam_engines.kit.absent import absent, no_internet

no_internet()

absent("librosa", "soundfile", "nagisa")

from qwen_asr import Qwen3ASRModel  # noqa: E402
from qwen_asr.inference.utils import split_audio_into_chunks  # noqa: E402

__all__ = ["Qwen3ASRModel", "split_audio_into_chunks"]
