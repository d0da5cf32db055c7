"""A stop point inside llama.cpp's computing: a byte that it looks at before every node of a graph."""

from __future__ import annotations

import ctypes
import sys


class StopFlag:
    """Raise it from any thread, and a running ``llama_decode`` gives up with status 2 within milliseconds.

    llama.cpp asks a C function ``bool (*)(void *)`` (ggml.h, ``ggml_abort_callback``; on CPU and Metal)
    hundreds of times a token. A Python function there would take the interpreter's lock each time. So the C
    library's ``strlen`` stands in for it: of an empty string it is 0, and 1 once the flag's byte is set.
    """

    def __init__(self) -> None:
        # Two bytes: the second is the zero that always ends the "string".
        self._byte = (ctypes.c_char * 2)()
        self.data = ctypes.addressof(self._byte)
        """For ``abort_callback_data``. The flag must outlive the context."""
        library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        self.function = ctypes.cast(library.strlen, ctypes.c_void_p)
        """For ``abort_callback``."""

    def up(self) -> None:
        """Stop what is being computed, and whatever is begun before ``down``."""
        self._byte[0] = b"\x01"

    def down(self) -> None:
        """Let computing go on."""
        self._byte[0] = b"\x00"
