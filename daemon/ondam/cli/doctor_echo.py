"""``ondam doctor --echo``."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from ondam.cli.terminal import print_json, say
from ondam.errors import AudioError
from ondam.messages import message, reader_language
from ondam.places import Places

if TYPE_CHECKING:
    from ondam.audio.echocheck import EchoReport
    from ondam.config import Config


def run(here: Places, json_wanted: bool) -> int:
    """Measure, tell; exit code 1 when the echo stays. Raises AudioError without a device."""
    from ondam.config import load

    config = load(here.config_file)
    for kind, spec in (("microphone", config.audio.microphone), ("speaker", config.audio.speaker)):
        if spec == "none" or spec.startswith("wav:"):
            raise AudioError("doctor_echo_no_device", key=kind, spec=spec)
    if not json_wanted:
        click.echo(say("doctor_echo_begins"), err=True)
    report = asyncio.run(measure(config))
    well = report.verdict != "half_duplex"
    told = message(f"doctor_echo_{report.verdict}", reader_language())
    advice = told.next
    if report.verdict == "cancelling" and config.audio.echo == "off":
        advice = say("doctor_echo_is_off")
    if json_wanted:
        print_json(
            {
                "ok": well,
                "verdict": report.verdict,
                "microphone": report.microphone,
                "speaker": report.speaker,
                "delay_ms": _rounded(report.delay_ms),
                "echo_db": _rounded(report.echo_db),
                "cancellation_db": _rounded(report.cancellation_db),
                "noise_dbfs": _rounded(report.noise_dbfs),
                "text": told.text,
                "next": advice,
            }
        )
        return 0 if well else 1
    click.echo(f"{'✓' if well else '✗'} {told.text}")
    click.echo(f"    {say('doctor_echo_devices', speaker=report.speaker, microphone=report.microphone)}")
    if report.delay_ms is not None:
        click.echo(f"    {say('doctor_echo_delay', ms=round(report.delay_ms))}")
    if report.echo_db is not None:
        click.echo(f"    {say('doctor_echo_level', db=round(report.echo_db))}")
    if report.cancellation_db is not None:
        click.echo(f"    {say('doctor_echo_cancelled', db=round(report.cancellation_db))}")
    if advice:
        click.echo(f"    → {advice}")
    return 0 if well else 1


async def measure(config: Config) -> EchoReport:
    """With the configured devices, as the daemon opens them."""
    from ondam.audio import open_microphone, open_speaker
    from ondam.audio.echocheck import Faults, check_echo

    faults = Faults()
    microphone = open_microphone(config.audio.microphone, on_fault=faults.of("microphone"))
    speaker = open_speaker(
        config.audio.speaker, latency_ms=config.audio.speaker_latency_ms, on_fault=faults.of("speaker")
    )
    try:
        return await check_echo(microphone, speaker, faults, progress=_bar)
    finally:
        await microphone.close()
        await speaker.close()


def _bar(share: float) -> None:
    if sys.stderr.isatty():
        full = round(share * 30)
        click.echo(f"\r{'█' * full}{'░' * (30 - full)}", nl=share >= 1, err=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
