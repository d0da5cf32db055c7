"""The stop flag as llama.cpp sees it: a C function and an address."""

from __future__ import annotations

import ctypes

from ondam_engines.llama_cpp.abort import StopFlag

AbortCallback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
"""``ggml_abort_callback`` of ggml.h."""


def test_the_flag_says_stop_only_while_it_is_up() -> None:
    flag = StopFlag()
    asked = ctypes.cast(flag.function, AbortCallback)
    assert asked(flag.data) is False
    flag.up()
    flag.up()
    assert asked(flag.data) is True
    flag.down()
    assert asked(flag.data) is False


def test_two_flags_are_apart() -> None:
    one, other = StopFlag(), StopFlag()
    one.up()
    assert ctypes.cast(other.function, AbortCallback)(other.data) is False
