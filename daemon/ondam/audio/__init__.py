"""Sound in and out: devices that heal themselves, files in their place, resampling."""

from __future__ import annotations

from ondam.audio.devices import Device
from ondam.audio.factory import is_device, list_devices, open_microphone, open_speaker
from ondam.audio.faults import OnFault
from ondam.audio.resample import Resampler, resampled
from ondam.audio.simulated import NoMicrophone, WavMicrophone, WavSpeaker
from ondam.audio.wav import read_wav, write_wav

__all__ = [
    "Device",
    "NoMicrophone",
    "OnFault",
    "Resampler",
    "WavMicrophone",
    "WavSpeaker",
    "is_device",
    "list_devices",
    "open_microphone",
    "open_speaker",
    "read_wav",
    "resampled",
    "write_wav",
]
