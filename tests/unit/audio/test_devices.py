from __future__ import annotations

import pytest

from ondam.audio.devices import Device, choose

DEVICES = (
    Device("microphone", "alsa_output.usb.monitor", "Monitor of USB Headset", "server", monitor=True),
    Device("microphone", "alsa_input.pci", "Built-in Audio", "server", default=True),
    Device("microphone", "alsa_input.usb", "USB Headset", "server"),
    Device("speaker", "alsa_output.usb", "USB Headset", "server", default=True),
)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("default", "alsa_input.pci"),
        ("alsa_input.usb", "alsa_input.usb"),
        ("USB Headset", "alsa_input.usb"),
        ("usb head", "alsa_input.usb"),
        ("pci", "alsa_input.pci"),
        ("alsa_output.usb.monitor", "alsa_output.usb.monitor"),
    ],
)
def test_a_device_is_found_by_name_title_or_part(spec: str, name: str) -> None:
    found = choose(spec, "microphone", DEVICES)
    assert found
    assert found.name == name


@pytest.mark.parametrize("spec", ["Monitor of", "monitor", "Webcam"])
def test_a_monitor_is_no_microphone_unless_named_in_full(spec: str) -> None:
    assert choose(spec, "microphone", DEVICES) is None


def test_a_default_that_is_a_monitor_is_passed_over() -> None:
    monitor = Device("microphone", "m", "m", "server", default=True, monitor=True)
    assert choose("default", "microphone", [monitor]) is None
    assert choose("default", "microphone", [monitor, DEVICES[2]]) == DEVICES[2]


def test_microphones_and_speakers_do_not_mix() -> None:
    found = choose("USB Headset", "speaker", DEVICES)
    assert found
    assert found.name == "alsa_output.usb"
