"""Qwen3-ASR calls languages by their English names."""

from __future__ import annotations

NAMES = {
    "ko": "Korean",
    "en": "English",
    "zh": "Chinese",
    "yue": "Cantonese",
    "ar": "Arabic",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "id": "Indonesian",
    "it": "Italian",
    "ru": "Russian",
    "th": "Thai",
    "vi": "Vietnamese",
    "ja": "Japanese",
    "tr": "Turkish",
    "hi": "Hindi",
    "ms": "Malay",
    "nl": "Dutch",
    "sv": "Swedish",
    "da": "Danish",
    "fi": "Finnish",
    "pl": "Polish",
    "cs": "Czech",
    "fil": "Filipino",
    "fa": "Persian",
    "el": "Greek",
    "ro": "Romanian",
    "hu": "Hungarian",
    "mk": "Macedonian",
}
"""BCP 47 primary tag to what ``transcribe(language=…)`` takes. Anything else raises there."""

WITHOUT_SPACES = {"zh", "yue", "ja", "th"}
"""Written without spaces between words, so that parts of a transcript are joined without one."""
