"""What a server tells of itself, as ``wyoming.info`` lays it out.

Not built with ``wyoming.info`` and ``wyoming.audio``: importing either imports ``audioop``, which Python
warns about and has removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wyoming.event import Event

AUDIO_START, AUDIO_CHUNK, AUDIO_STOP = "audio-start", "audio-chunk", "audio-stop"


def info(
    domain: str, program: str, version: str, kind: str, artifacts: Sequence[tuple[str, list[str]]]
) -> Event:
    """The answer to ``describe``: one program of ``domain`` (``asr``, ``tts``) with its artifacts.

    ``kind`` is what Wyoming calls them (``models``, ``voices``); each has a name and its languages.
    """
    found = [{**_artifact(name, version), "languages": languages} for name, languages in artifacts]
    return Event("info", {domain: [{**_artifact(program, version), kind: found}]})


def _artifact(name: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "attribution": {"name": name, "url": ""},
        "installed": True,
        "description": None,
        "version": version,
    }
