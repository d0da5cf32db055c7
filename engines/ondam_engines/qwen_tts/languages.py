"""Qwen3-TTS calls languages by their English names, in small letters."""

from __future__ import annotations

NAMES = {
    "ko": "korean",
    "en": "english",
    "zh": "chinese",
    "ja": "japanese",
    "de": "german",
    "fr": "french",
    "ru": "russian",
    "pt": "portuguese",
    "es": "spanish",
    "it": "italian",
}
"""BCP 47 primary tag to what ``generate_custom_voice(language=…)`` takes."""
