from __future__ import annotations

import asyncio
import builtins
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence

import pytest
from tests.unit.audio.virtual_time import settle

from ondam.audio import list_devices
from ondam.audio.portaudio import PortAudio, sounddevice
from ondam.errors import AudioError


def test_portaudio_that_is_not_installed_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    real = builtins.__import__

    def no_library(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", no_library)
    with pytest.raises(AudioError) as caught:
        sounddevice()
    assert caught.value.message("ko").next == "sudo apt install libportaudio2 libasound2-plugins"


async def test_a_job_that_hangs_holds_up_neither_the_loop_nor_who_gave_up() -> None:
    host = PortAudio()
    release = threading.Event()
    late: list[str] = []
    undone = threading.Event()

    def hang() -> str:
        release.wait(5)
        return "stream"

    def undo(stream: str) -> None:
        late.append(stream)
        undone.set()

    waiting = asyncio.create_task(host.call(hang, undo=undo))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    assert await host.call(lambda: 7) == 7
    await asyncio.to_thread(undone.wait, 5)
    assert late == ["stream"]


async def test_what_a_job_raises_reaches_who_asked() -> None:
    def fail() -> None:
        raise AudioError("portaudio_failed", reason="no card")

    with pytest.raises(AudioError, match="no card"):
        await PortAudio().call(fail)


async def test_listing_devices_without_a_sound_server_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_SERVER", "unix:/nonexistent/native")
    begun = time.monotonic()
    assert isinstance(await list_devices(3.0), tuple)
    assert time.monotonic() - begun < 7
