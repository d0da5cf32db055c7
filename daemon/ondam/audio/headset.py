"""Which devices nobody else in the room hears."""

from __future__ import annotations

import re

HEADSET = re.compile(
    r"head ?(set|phone)|ear ?(phone|bud|piece)|air ?pod|\bbuds\d*\b|hands-?free|\b(hsp|hfp)\b"
    r"|헤드 ?(셋|폰|세트)|이어 ?(폰|버드|셋)|버즈|에어팟|핸즈 ?프리",
    re.IGNORECASE,
)
"""What devices call themselves, as PulseAudio, PipeWire and ALSA name them. Only a first guess: an echo that
is heard all the same is noticed."""


def is_headset(name: str) -> bool:
    """Whether a device's name says that it is worn on the head."""
    return HEADSET.search(name) is not None
