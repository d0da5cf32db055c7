"""From what the configuration calls a microphone or a speaker to one, and what there is to call."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from ondam.audio.devices import Device
from ondam.audio.faults import Clock, OnFault, log_fault
from ondam.audio.microphone import DeviceMicrophone
from ondam.audio.portaudio import portaudio
from ondam.audio.pulse import pulse_watch
from ondam.audio.simulated import NoMicrophone, WavMicrophone, WavSpeaker
from ondam.audio.speaker import DeviceSpeaker
from ondam.pipeline.ports import Microphone, Speaker


def open_microphone(
    spec: str, *, on_fault: OnFault = log_fault, clock: Clock = time.monotonic_ns
) -> Microphone:
    """``spec``: "default", "none", "wav:/path", or a device's name or part of one. Call it on the event loop.

    A device that is not there is no error: ``on_fault`` tells, and it is used once it appears.
    Raises AudioError when a file cannot be read.
    """
    if spec == "none":
        return NoMicrophone()
    if spec.startswith("wav:"):
        return WavMicrophone(Path(spec.removeprefix("wav:")), clock=clock)
    return DeviceMicrophone(spec, on_fault=on_fault, clock=clock)


def open_speaker(
    spec: str, *, latency_ms: int, on_fault: OnFault = log_fault, clock: Clock = time.monotonic_ns
) -> Speaker:
    """``spec`` as in ``open_microphone``. ``latency_ms``: how much sound the device holds ahead.

    "none" plays to nowhere in real time; "wav:/path" too, and writes it there when it is closed.
    """
    if spec == "none":
        return WavSpeaker(None, clock=clock, longest_s=0)
    if spec.startswith("wav:"):
        return WavSpeaker(Path(spec.removeprefix("wav:")), clock=clock)
    return DeviceSpeaker(spec, latency_ms=latency_ms, on_fault=on_fault, clock=clock)


def is_device(spec: str) -> bool:
    """Whether ``spec`` names a device, and not a file or nothing at all."""
    return spec != "none" and not spec.startswith("wav:")


async def list_devices(timeout_s: float = 2.0) -> tuple[Device, ...]:
    """The microphones and speakers that could be named. Empty when the sound system does not answer in time.

    Raises AudioError when PortAudio is not installed or does not work.
    """
    watch = pulse_watch()
    await watch.looked(timeout_s)
    if watch.state.running:
        return tuple(device for device in watch.state.devices if not device.monitor)
    try:
        return await asyncio.wait_for(portaudio().devices(), timeout_s)
    except TimeoutError:
        return ()
