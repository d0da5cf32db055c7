"""Korean as espeak-ng says it, and where its words begin. Run by the espeak engine's own Python, which alone
has the library: texts as arguments, one line of JSON for each.
"""

from __future__ import annotations

import base64
import ctypes
import json
import sys

import espeakng_loader

SYNCHRONOUS, BUFFER_MS, DONT_EXIT = 2, 60, 0x8000
CHARACTERS, UTF8, RATE, WORDS_PER_MINUTE = 1, 1, 1, 175
LIST_ENDS, WORD = 0, 1


class Event(ctypes.Structure):
    """``espeak_EVENT`` of ``speak_lib.h``."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))


def main() -> None:
    library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    data = str(espeakng_loader.get_data_path()).encode()
    rate_hz = library.espeak_Initialize(SYNCHRONOUS, BUFFER_MS, data, DONT_EXIT)
    pieces: list[bytes] = []
    words: list[int] = []

    def hear(samples: ctypes._Pointer[ctypes.c_short], count: int, events: ctypes._Pointer[Event]) -> int:
        number = 0
        while events[number].type != LIST_ENDS:
            if events[number].type == WORD:
                words.append(events[number].sample)
            number += 1
        if samples and count > 0:
            pieces.append(ctypes.string_at(samples, 2 * count))
        return 0

    heard = CALLBACK(hear)  # kept: ctypes does not keep a callback that C holds
    library.espeak_SetSynthCallback(heard)
    library.espeak_SetVoiceByName(b"ko")
    library.espeak_SetParameter(RATE, WORDS_PER_MINUTE, 0)
    for text in sys.argv[1:]:
        pieces.clear()
        words.clear()
        said = text.encode() + b"\0"
        library.espeak_Synth(said, ctypes.c_size_t(len(said)), 0, CHARACTERS, 0, UTF8, None, None)
        pcm = base64.b64encode(b"".join(pieces)).decode()
        print(json.dumps({"rate_hz": rate_hz, "pcm": pcm, "words": words}), flush=True)


if __name__ == "__main__":
    main()
