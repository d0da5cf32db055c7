"""``ondam doctor``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil

from ondam.cli.finding import Finding, guarded
from ondam.cli.terminal import as_json, columns, daemon, named, print_json, say
from ondam.errors import AudioError, ConfigError, ControlError, OndamError
from ondam.messages import Phrase, message, reader_language
from ondam.places import Places, places

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.planner.facts import Facts
    from ondam.planner.gpus import Sight
    from ondam.planner.plan import Plan
    from ondam.supervisor.manifest import EngineFolder

PORTAUDIO_S = 5.0
"""A sound system that has not listed its devices by then hangs."""


@click.command("doctor")
@click.option("--echo", is_flag=True, help="Play a sound, and say how well its echo can be removed.")
@click.option("--air-gap", is_flag=True, help="Prove that nothing goes out: watch a whole turn.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --air-gap: where the report goes, as Markdown.",
)
@click.option(
    "--without-isolation",
    is_flag=True,
    help="With --air-gap: leave the engines their network, to see where they would go.",
)
@as_json
def command(
    echo: bool, air_gap: bool, report: Path | None, without_isolation: bool, json_wanted: bool
) -> int:
    """Look for what keeps Ondam from working, and say what to type.

    Looks at the configuration, the machine (memory, disk, power), its GPUs and their driver, what the plan
    makes of them, the engines' environments, the models, PortAudio, the sound server and devices, what keeps
    engines from the network, the sockets and the daemon. Each is looked at whatever became of those before.
    Nothing is changed or fetched.

    Exit code 0: all is well; 1: something is not, and the lines with ✗ say what to type. That no daemon runs,
    or that there is no GPU, is no fault. With --json {"ok", "checks": [{"check", "ok", "text", "next"}],
    "facts"}; facts are what ondam plan --for takes (null where the machine could not be looked at).

    With --echo: play a sound of seven seconds on the configured speaker, listen with the configured
    microphone, and tell how late and how loud it comes back and how many decibels of it can be removed.
    With --json then {"ok", "verdict": "cancelling"|"no_echo"|"half_duplex", "microphone", "speaker",
    "delay_ms", "echo_db", "cancellation_db", "noise_dbfs", "text", "next"}. Exit code 1 when the echo stays.

    With --air-gap: start a daemon of its own in a network with nothing in it, ask it a question, and watch
    with strace every call of every process that could lead out. The report has all attempts, listening
    sockets, files outside Ondam's folders and what keeps each engine from the network (docs/hardening.md).
    Exit code 1 when anything tried to get out, or nobody could watch.
    """
    if air_gap:
        from ondam.cli.doctor_air_gap import run as prove

        return prove(places(), report, not without_isolation, json_wanted)
    if report or without_isolation:
        raise click.UsageError(say("airgap_options_alone"), click.get_current_context())
    if echo:
        from ondam.cli.doctor_echo import run

        return run(places(), json_wanted)
    examination = Examination(places())
    found = list(examination.findings())
    well = all(finding.ok for finding in found)
    if json_wanted:
        checks = [{"check": f.check, "ok": f.ok, "text": f.text, "next": f.next} for f in found]
        facts = examination.facts.as_json() if examination.facts else None
        print_json({"ok": well, "checks": checks, "facts": facts})
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


class Examination:
    """One look at everything. ``facts``: of the machine, once it has been looked at."""

    def __init__(self, here: Places) -> None:
        self.facts: Facts | None = None
        self._here = here

    def findings(self) -> Iterator[Finding]:
        """Each thing, whatever became of those before it."""
        from ondam.cli.doctor_network import network
        from ondam.config import load

        here = self._here
        try:
            config = load(here.config_file)
        except OndamError as error:
            yield Finding.of("config", error)
            config = load(None)  # the rest can be looked at with the shipped values
        else:
            code = "doctor_config_fine" if here.config_file.exists() else "cli_config_none"
            yield Finding("config", True, say(code, path=here.config_file))
        yield from guarded("machine", self._machine(config))
        yield from guarded("sound", _sound(config))
        yield from guarded("network", network(config))
        yield from guarded("sockets", _sockets(here))
        yield from guarded("service", _service())

    def _machine(self, config: Config) -> Iterator[Finding]:
        from ondam.cli.doctor_machine import gpus, machine
        from ondam.planner.gpus import look
        from ondam.planner.probe import probe

        sight = look()
        facts = self.facts = probe(sight, self._here.models)
        yield from machine(facts)
        yield from guarded("gpu", gpus(sight, facts))
        yield from guarded("plan", self._plan(config, facts, sight))

    def _plan(self, config: Config, facts: Facts, sight: Sight) -> Iterator[Finding]:
        """What the plan for this machine needs: room, environments and weights."""
        from ondam.cli.doctor_machine import disk, idle, memory, plan_fit
        from ondam.cli.doctor_prepared import prepared
        from ondam.models.catalog import Catalog, daemon_models
        from ondam.models.lookup import WantedModels
        from ondam.models.store import Store, fault_error
        from ondam.planner import measured
        from ondam.planner.choose import consider
        from ondam.planner.rooms import cards
        from ondam.supervisor.manifest import engine_roots, find_engines

        store = Store(self._here.models)
        broken: list[OndamError] = []
        engines = find_engines(engine_roots(self._here.user_engines))
        catalog = Catalog.union(engines, store.imported(broken.append))
        for error in broken:
            yield Finding.of("models", error)
        wanted_models, known = WantedModels(catalog, store), measured.load(self._here)
        plan = consider(facts, config, engines, wanted_models, measured=known)
        yield from guarded("plan", plan_fit(plan, engines, sight))
        if cards(facts, config.plan):
            later = consider(facts, config, engines, wanted_models, ahead=True, measured=known)
            yield from guarded("gpu", idle(plan, later, catalog))
        if not self._here.control_socket.exists():
            available = min(psutil.virtual_memory().available / 2**30, facts.ram_gib)
            yield from guarded("memory", memory(plan, facts, available))
        yield from guarded("disk", disk(plan, catalog, store, self._here))
        yield from guarded("engines", environments(plan, engines, self._here))
        yield from guarded("engines", prepared(plan, engines, self._here, config.supervisor))
        wanted = [catalog.cards[p.model] for p in plan.launched if p.model in catalog.cards]
        for card in {card.id: card for card in (*daemon_models(), *wanted)}.values():
            condition = store.check(card)
            if condition.state == "whole":
                yield Finding("models", True, say("doctor_model_whole", id=card.id))
            else:
                yield Finding.of("models", fault_error(condition, store.folder(card.id)))


def environments(plan: Plan, engines: dict[str, EngineFolder], here: Places) -> Iterator[Finding]:
    """Whether what the plan launches is built, for the device that it wants."""
    from ondam.supervisor.environment import installed, is_current

    variants = {planned.engine: planned.variant for planned in plan.launched}
    for name, variant in variants.items():
        try:
            installed(engines[name], here, variant)
            current = is_current(engines[name], variant, here)
        except OndamError as error:
            yield Finding.of("engines", error)
            continue
        code = "doctor_engine_current" if current else "doctor_engine_stale"
        yield Finding.told("engines", current, Phrase(code, name=name, variant=variant))


def _sound(config: Config) -> Iterator[Finding]:
    from ondam.audio import list_devices
    from ondam.audio.factory import is_device

    specs = (("microphone", config.audio.microphone), ("speaker", config.audio.speaker))
    used = any(is_device(spec) for _, spec in specs)
    try:
        devices = asyncio.run(list_devices())
    except AudioError as error:
        yield Finding.of("portaudio", error)
        return
    if used:
        yield from sound_system()
    for kind, spec in specs:
        titles = [device.title for device in devices if device.kind == kind]
        if titles:
            shown = ", ".join(titles)
            yield Finding("sound", True, say("doctor_sound_devices", kind=say(f"cli_{kind}"), names=shown))
        elif not is_device(spec):
            yield Finding("sound", True, say("doctor_sound_devices", kind=say(f"cli_{kind}"), names=spec))
        else:
            told = message("doctor_sound_none", reader_language(), kind=say(f"cli_{kind}"), key=kind)
            yield Finding("sound", False, told.text, told.next)


def sound_system() -> Iterator[Finding]:
    """PortAudio and the sound server, each by itself: with a server, the devices are listed by that alone."""
    from ondam.audio.portaudio import portaudio, reaches_server, version
    from ondam.audio.pulse import pulse_watch

    async def ask() -> tuple[str, bool]:
        async with asyncio.timeout(PORTAUDIO_S):
            return await portaudio().call(version), await portaudio().call(reaches_server)

    running = pulse_watch().state.running
    try:
        name, through = asyncio.run(ask())
    except AudioError as error:
        yield Finding.of("portaudio", error)
        return
    except TimeoutError:
        yield Finding.told("portaudio", False, Phrase("doctor_portaudio_hangs", seconds=f"{PORTAUDIO_S:g}"))
        return
    yield Finding.told("portaudio", True, Phrase("doctor_portaudio_fine", version=name))
    if running and not through:
        yield Finding.told("soundserver", False, Phrase("doctor_server_unreached"))
    elif sys.platform == "linux":
        code = "doctor_server_runs" if running else "doctor_server_none"
        yield Finding.told("soundserver", True, Phrase(code))


def _service() -> Iterator[Finding]:
    from ondam.cli.doctor_service import service

    return service()


def _sockets(here: Places) -> Iterator[Finding]:
    from ondam.places import private_folder

    try:
        if not here.control_socket.exists():  # else the daemon made it, perhaps for a group
            private_folder(here.runtime)
        yield Finding("sockets", True, say("doctor_sockets_fine", path=here.runtime))
        status = daemon(lambda client: client.status())
    except ConfigError as error:
        yield Finding.of("sockets", error)
    except ControlError as error:
        # That no daemon runs is no fault of the machine.
        told = error.message(reader_language())
        check = "daemon" if error.code.startswith("daemon_") else "sockets"
        yield Finding(check, error.code == "daemon_not_running", told.text, told.next)
    else:
        yield Finding("daemon", True, say("doctor_daemon_runs", state=named("cli_state_", status["state"])))
