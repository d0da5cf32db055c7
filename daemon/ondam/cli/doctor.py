"""``ondam doctor``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ondam.cli.terminal import as_json, columns, daemon, named, print_json, say
from ondam.errors import AudioError, ConfigError, ControlError, OndamError
from ondam.messages import message, reader_language
from ondam.places import Places, places

if TYPE_CHECKING:
    from ondam.config import Config


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``next``: what to type when it is not well."""

    check: str
    ok: bool
    text: str
    next: str = ""


@click.command("doctor")
@click.option("--echo", is_flag=True, help="Play a sound, and say how well its echo can be removed.")
@as_json
def command(echo: bool, json_wanted: bool) -> int:
    """Look for what keeps Ondam from working, and say what to type. Exit code 1 when something does.

    With --echo: play a sound of seven seconds on the configured speaker, listen with the configured
    microphone, and tell how late and how loud it comes back and how many decibels of it can be removed.
    With --json then {"ok", "verdict": "cancelling"|"no_echo"|"half_duplex", "microphone", "speaker",
    "delay_ms", "echo_db", "cancellation_db", "noise_dbfs", "text", "next"}. Exit code 1 when the echo stays.
    """
    if echo:
        from ondam.cli.doctor_echo import run

        return run(places(), json_wanted)
    found = list(examine(places()))
    well = all(finding.ok for finding in found)
    if json_wanted:
        checks = [{"check": f.check, "ok": f.ok, "text": f.text, "next": f.next} for f in found]
        print_json({"ok": well, "checks": checks})
        return 0 if well else 1
    rows = [["✓" if f.ok else "✗", say(f"doctor_{f.check}"), f.text.splitlines()[0]] for f in found]
    for finding, line in zip(found, columns(rows), strict=True):
        click.echo(line)
        for more in finding.text.splitlines()[1:]:
            click.echo(f"    {more}")
        if finding.next and not finding.ok:
            click.echo(f"    → {finding.next}")
    if well:
        click.echo(say("doctor_well"))
    return 0 if well else 1


def examine(here: Places) -> Iterator[Finding]:
    """Each thing, whatever became of those before it."""
    from ondam.config import load

    try:
        config = load(here.config_file)
    except OndamError as error:
        yield _broken("config", error)
        config = load(None)  # the rest can be looked at with the shipped values
    else:
        yield _fine("config", "doctor_config_fine" if here.config_file.exists() else "cli_config_none", here)
    yield from _plan(config, here)
    yield from _sound(config)
    yield from _sockets(here)


def _fine(check: str, code: str, here: Places) -> Finding:
    return Finding(check, True, say(code, path=here.config_file))


def _broken(check: str, error: OndamError) -> Finding:
    told = error.message(reader_language())
    return Finding(check, False, told.text, told.next)


def _plan(config: Config, here: Places) -> Iterator[Finding]:
    """The environments and weights that the plan for this machine needs."""
    from ondam.models.catalog import Catalog, daemon_models
    from ondam.models.lookup import WantedModels
    from ondam.models.store import Store, fault_error
    from ondam.planner.choose import choose
    from ondam.planner.probe import probe
    from ondam.supervisor.environment import installed, is_current, variant_for
    from ondam.supervisor.manifest import engine_roots, find_engines

    store = Store(here.models)
    try:
        engines = find_engines(engine_roots(here.user_engines))
        catalog = Catalog.union(engines, store.imported())
        plan = choose(probe(), config, engines, WantedModels(catalog, store))
    except OndamError as error:
        yield _broken("engines", error)
        return
    for name in dict.fromkeys(planned.engine for planned in plan.launched):
        try:
            installed(engines[name], here)
            current = is_current(engines[name], variant_for(engines[name]), here)
        except OndamError as error:
            yield _broken("engines", error)
            continue
        told = message(
            "doctor_engine_current" if current else "doctor_engine_stale", reader_language(), name=name
        )
        yield Finding("engines", current, told.text, told.next)
    wanted = [catalog.cards[p.model] for p in plan.launched if p.model in catalog.cards]
    for card in {card.id: card for card in (*daemon_models(), *wanted)}.values():
        condition = store.check(card)
        if condition.state == "whole":
            yield Finding("models", True, say("doctor_model_whole", id=card.id))
        else:
            yield _broken("models", fault_error(condition, store.folder(card.id)))


def _sound(config: Config) -> Iterator[Finding]:
    from ondam.audio import list_devices

    try:
        devices = asyncio.run(list_devices())
    except AudioError as error:
        yield _broken("sound", error)
        return
    for kind, spec in (("microphone", config.audio.microphone), ("speaker", config.audio.speaker)):
        titles = [device.title for device in devices if device.kind == kind]
        if titles:
            shown = ", ".join(titles)
            yield Finding("sound", True, say("doctor_sound_devices", kind=say(f"cli_{kind}"), names=shown))
        elif spec == "none" or spec.startswith("wav:"):
            yield Finding("sound", True, say("doctor_sound_devices", kind=say(f"cli_{kind}"), names=spec))
        else:
            told = message("doctor_sound_none", reader_language(), kind=say(f"cli_{kind}"), key=kind)
            yield Finding("sound", False, told.text, told.next)


def _sockets(here: Places) -> Iterator[Finding]:
    from ondam.places import private_folder

    try:
        if not here.control_socket.exists():  # else the daemon made it, perhaps for a group
            private_folder(here.runtime)
        yield Finding("sockets", True, say("doctor_sockets_fine", path=here.runtime))
        status = daemon(lambda client: client.status())
    except ConfigError as error:
        yield _broken("sockets", error)
    except ControlError as error:
        # That no daemon runs is no fault of the machine.
        told = error.message(reader_language())
        check = "daemon" if error.code.startswith("daemon_") else "sockets"
        yield Finding(check, error.code == "daemon_not_running", told.text, told.next)
    else:
        yield Finding("daemon", True, say("doctor_daemon_runs", state=named("cli_state_", status["state"])))
