"""qwen-tts without what it imports for other purposes than ours.

``torchaudio``, ``onnxruntime`` and ``sox`` serve its 25 Hz codec, ``librosa`` and ``soundfile`` the voices
that it clones from files: nothing of it is called to speak with a built-in voice at 12 Hz. See
docs/decisions/torch.md.
"""

from __future__ import annotations

from ondam_engines.kit.absent import absent, no_internet

no_internet()

absent("torchaudio.compliance.kaldi", "onnxruntime", "sox", "librosa.filters", "soundfile")

from qwen_tts import Qwen3TTSModel  # noqa: E402

__all__ = ["Qwen3TTSModel"]
