"""espeak-ng as a library: text in, samples out, one text at a time.

Function and constant names are those of espeak-ng's ``speak_lib.h``. The library keeps its state in globals:
one ``Espeak`` per process, used from one thread at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

AUDIO_OUTPUT_SYNCHRONOUS = 2
"""Samples go to the callback, and ``espeak_Synth`` returns when the text is done."""
ESPEAK_INITIALIZE_DONT_EXIT = 0x8000
"""Report a missing data folder instead of ending the process."""
POS_CHARACTER = 1
ESPEAK_CHARS_UTF8 = 1
"""UTF-8, and neither SSML (0x10) nor ``[[phonemes]]`` (0x100): markup is text."""
ESPEAK_RATE = 1

BUFFER_MS = 60
"""Length of the pieces that the callback is given."""

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class EspeakError(Exception):
    """The library refused what it was asked."""


class Espeak:
    """The library, initialised. Raises EspeakError or OSError when it cannot be."""

    def __init__(self, library: Path, data: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.espeak_Info.restype = ctypes.c_char_p
        self._library.espeak_Synth.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        rate_hz = self._library.espeak_Initialize(
            AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, str(data).encode(), ESPEAK_INITIALIZE_DONT_EXIT
        )
        if rate_hz <= 0:
            raise EspeakError(f"espeak-ng could not be initialised with the data in {data}")
        self.rate_hz: int = rate_hz
        self._hear: Callable[[bytes], bool] = lambda _: False
        # Kept: ctypes does not keep a callback that C holds.
        self._callback = _CALLBACK(self._receive)
        self._library.espeak_SetSynthCallback(self._callback)

    @property
    def version(self) -> str:
        """As the library says it, for example ``1.52-dev``."""
        return str(self._library.espeak_Info(None).decode())

    def choose(self, voice: str, words_per_minute: int) -> None:
        """The voice and pace of what is said next."""
        self._check(self._library.espeak_SetVoiceByName(voice.encode()), f"voice {voice}")
        self._check(
            self._library.espeak_SetParameter(ESPEAK_RATE, words_per_minute, 0), f"pace {words_per_minute}"
        )

    def say(self, text: str, hear: Callable[[bytes], bool]) -> None:
        """Give ``hear`` the samples as they come; it says whether to go on. Returns when all is said."""
        self._hear = hear
        encoded = text.encode() + b"\0"
        self._check(
            self._library.espeak_Synth(
                encoded, len(encoded), 0, POS_CHARACTER, 0, ESPEAK_CHARS_UTF8, None, None
            ),
            "a text",
        )

    def _receive(self, samples: ctypes._Pointer[ctypes.c_short], count: int, events: int | None) -> int:
        if not samples or count <= 0:
            return 0
        return 0 if self._hear(ctypes.string_at(samples, count * 2)) else 1

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status != 0:
            raise EspeakError(f"espeak-ng refused {what}: status {status}")
