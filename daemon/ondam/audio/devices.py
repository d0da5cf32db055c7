"""What a device is, and which one a person means. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["microphone", "speaker"]


DEFAULT = "default"
"""Whatever the system uses when nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Device:
    """A microphone or a speaker that could be opened."""

    kind: Kind
    name: str
    """What it is opened by: it stays the same when numbers change."""
    title: str
    """What a person calls it."""
    system: Literal["server", "portaudio"]
    """Listed by a sound server (PulseAudio or PipeWire), or by PortAudio itself."""
    default: bool = False
    monitor: bool = False
    """Not a microphone but what a speaker plays."""


def choose(spec: str, kind: Kind, devices: Iterable[Device]) -> Device | None:
    """The device that ``spec`` means: "default", a name, a title, or a part of either.

    Never a monitor unless it is named in full: a sound server without a microphone offers the speaker's own
    monitor as the default source, and Ondam would talk to itself.
    """
    those = [device for device in devices if device.kind == kind]
    real = [device for device in those if not device.monitor]
    if spec == DEFAULT:
        return next((device for device in real if device.default), real[0] if real else None)
    for device in those:
        if spec in (device.name, device.title):
            return device
    wanted = spec.casefold()
    return next((d for d in real if wanted in d.title.casefold() or wanted in d.name.casefold()), None)
