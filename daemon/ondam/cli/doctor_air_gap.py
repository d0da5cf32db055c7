"""``ondam doctor --air-gap``."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

import click

from ondam import __version__
from ondam.carried import carried
from ondam.cli.doctor_network import attainable
from ondam.cli.own_daemon import home_beside, own_daemon, until_ready
from ondam.cli.terminal import print_json, say
from ondam.errors import EngineError
from ondam.messages import message, reader_language
from ondam.owner import become_owner, name_of
from ondam.places import Places
from ondam.supervisor.airlock import VARIABLE, Network

if TYPE_CHECKING:
    from ondam.airgap.proof import Around, Engine, Proof
    from ondam.airgap.sockets import Listening
    from ondam.airgap.trace import Trace
    from ondam.config import Config
    from ondam.control import wire
    from ondam.types import Language

WATCHED_S = 15.0
"""Reporters gather before they send: onnxruntime's first attempt came 9 s after its start."""

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/proc", "/sys", "/dev", "/etc/ld.so.cache")
"""Programs, libraries, the kernel: read by every program there is."""


def run(here: Places, report: Path | None, isolated: bool, json_wanted: bool) -> int:
    """Make the proof, show it or write it; exit code 1 where it does not hold.

    Raises EngineError elsewhere than on Linux and where ``report`` cannot be written, and whatever keeps a
    turn from being made.
    """
    from ondam.airgap.page import page
    from ondam.config import load

    if sys.platform != "linux":
        raise EngineError("airgap_linux_alone")
    # The proof takes a minute: it is not made for a place that takes no page.
    with nullcontext() if report is None else _opened(report) as written:
        if here.group is not None:
            # The service has no more than its user's rights: a network that root takes away, it may not.
            become_owner(here.state.parent)
        if shutil.which("strace") is None:
            told = message("airgap_untraced", reader_language())
            click.echo(f"! {told.text}\n  → {told.next}", err=True)
        proof = asyncio.run(_prove(here, load(here.config_file), isolated))
        if written is not None:
            written.truncate(0)
            written.write(page(proof, reader_language()))
    if json_wanted:
        print_json(proof.as_json())
        return 1 if proof.problems else 0
    if report is None:
        click.echo(page(proof, reader_language()))
    else:
        for code in proof.problems or ("airgap_holds",):
            told = message(code, reader_language(), count=len(proof.tried))
            click.echo(f"{'✗' if proof.problems else '✓'} {told.text}")
            if told.next:
                click.echo(f"    → {told.next}")
        click.echo(say("airgap_written", path=report))
    return 1 if proof.problems else 0


def _opened(report: Path) -> TextIO:
    try:
        return report.open("a", encoding="utf-8")
    except OSError as error:
        raise EngineError("airgap_report_unwritable", path=report, reason=error.strerror or error) from error


async def _prove(here: Places, config: Config, isolated: bool) -> Proof:
    from ondam.airgap import trace
    from ondam.airgap.proof import Proof

    outside = configured(config)
    network, around = _surroundings(outside)
    language = config.spoken_language
    # The port is the running daemon's, and its address none that a network with nothing in it has.
    settings = {"language": language, "metrics.listen": ""}
    settings |= {} if isolated else {"supervisor.isolation": "off"}
    strace = shutil.which("strace")
    with home_beside(here) as (home, beside), tempfile.TemporaryDirectory(prefix="ondam-trace-") as folder:
        traces, user = Path(folder), name_of(home)
        before = trace.command(traces, strace) if strace else []
        async with AsyncExitStack() as running:
            await running.enter_async_context(
                own_daemon(beside, settings, alone=True, home=home, before=before, network=network)
            )
            turns, watched_s, status = await _turn(beside, language)
            names = {status["pid"]: "daemon"}
            names |= {engine["pid"]: engine["name"] for engine in status["engines"] if engine["pid"]}
            engines = tuple(_engine(engine) for engine in status["engines"])
            listening = _listening(names)
            means = _variable(status["pid"])
        found = trace.Trace.read(traces)
        seen = _judged(found, names, here, beside, outside) if strace else {}
    return Proof(
        at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        command=_command(isolated),
        versions={
            "ondam": __version__, "python": platform.python_version(),
            "system": _system(), "kernel": platform.release(), "machine": platform.machine(),
        },
        user=user,
        around=around,
        means=means,
        tracer=_version(strace) if strace else None,
        watched_s=round(watched_s, 1),
        turns=turns,
        engines=engines,
        listening=listening + wished_for(config),
        **seen,
    )  # fmt: skip


async def _turn(
    beside: Places, language: Language
) -> tuple[tuple[dict[str, object], ...], float, wire.Status]:
    """One spoken turn, and the time that a reporter needs to show itself."""
    from ondam.control.client import Client
    from ondam.measure.clips import clips

    async with Client(beside.control_socket, reader_language()) as client:
        await until_ready(client)
        began = time.monotonic()
        question = clips(language)[0].wav
        turn, _ = await client.wav_turn(question, language)
        await asyncio.sleep(max(0.0, began + WATCHED_S - time.monotonic()))
        made: dict[str, object] = {"outcome": turn["outcome"], "first_audio_ms": turn["first_audio_ms"]}
        return (made,), time.monotonic() - began, await client.status()


def _judged(
    found: Trace, names: dict[int, str], here: Places, beside: Places, outside: frozenset[tuple[str, int]]
) -> dict[str, Any]:
    from ondam.airgap.attempts import attempts
    from ondam.airgap.files import opened

    def name(thread: int) -> str:
        for each in found.ancestors(thread):
            if each in names:
                return names[each]
            if (told := found.program(each)).find("ondam_engines.") >= 0:
                # An engine that ended before it could be asked for its id.
                return told.partition("ondam_engines.")[2].partition(".")[0]
        return "daemon"

    runtime = str(beside.runtime.resolve())
    return {
        "attempts": attempts(
            found, name, own=lambda path: path.startswith((runtime, str(beside.runtime))), configured=outside
        ),
        "opened": opened(found, name, own=_own(here, beside), system=SYSTEM),
    }


def _own(here: Places, beside: Places) -> list[str]:
    """Folders of Ondam's, and of the Python that runs it."""
    folders = [here.config, here.data, here.state, beside.config.parent, beside.state, beside.runtime]
    if (version := carried()) is not None:
        folders.append(version)  # engines' environments and models lie beside the one that runs this
    programs = [Path(sys.prefix), Path(sys.base_prefix), *(Path(p) for p in sys.path if Path(p).is_dir())]
    return [os.devnull, *(str(path.resolve()) for path in (*folders, *programs))]


def configured(config: Config) -> frozenset[tuple[str, int]]:
    """Hosts and ports of engines whose address the user wrote."""
    found = set()
    for address in (config.stt.address, config.llm.url, config.tts.address):
        parts = urlsplit(address)
        if parts.scheme in {"tcp", "http", "https"} and parts.hostname:
            found.add((parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)))
    return frozenset(found)


def wished_for(config: Config) -> tuple[Listening, ...]:
    """The port that the user lets the daemon open."""
    from ondam.airgap.sockets import Listening

    if config.metrics.where is None:
        return ()
    family = "tcp6" if ":" in config.metrics.where.host else "tcp"
    return (Listening("daemon", family, config.metrics.listen, configured=True),)


def _surroundings(outside: frozenset[tuple[str, int]]) -> tuple[Network, Around]:
    """What the proof's daemon is let have. An engine by address is on the machine's network, or behind it."""
    if outside:
        return "open", "open"
    tried = attainable("loopback").means
    if "namespace" in tried:
        return "loopback", "namespace"
    return ("none", "filter") if "filter" in tried else ("open", "open")


def _engine(engine: wire.EngineStatus) -> Engine:
    from ondam.airgap.proof import Engine, cut
    from ondam.supervisor.isolation import isolation_of

    pid = engine["pid"]
    versions = (engine["report"] or {}).get("versions")
    return Engine(
        name=engine["name"],
        stage=engine["stage"],
        model=engine["model"],
        state=engine["state"],
        outside=engine["outside"],
        # Not as seen from here: the daemon of the proof is in a network of its own itself.
        isolation=None if pid is None else isolation_of(pid),
        versions=versions if isinstance(versions, dict) else {},
        environ={} if pid is None else cut(_environ(pid)),
    )


def _environ(pid: int) -> dict[str, str]:
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in raw.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def _variable(pid: int) -> str:
    return _environ(pid).get(VARIABLE, "open")


def _listening(names: dict[int, str]) -> tuple[Listening, ...]:
    from ondam.airgap.sockets import family_of, listening

    found: dict[int, str] = {}
    # The daemon first: its children are engines, each of which then says whose its own are.
    for leader, name in names.items():
        found |= dict.fromkeys(family_of(leader), name)
    return listening(found.items())


def _command(isolated: bool) -> str:
    home = os.environ.get("ONDAM_HOME")
    ondam = "ondam --system" if os.environ.get("ONDAM_SYSTEM") == "1" else "ondam"
    words = [f"{ondam} doctor --air-gap", *([] if isolated else ["--without-isolation"])]
    return (f"ONDAM_HOME={shlex.quote(home)} " if home else "") + " ".join(words)


def _version(strace: str) -> str:
    said = subprocess.run([strace, "--version"], capture_output=True, text=True, check=False).stdout
    return said.splitlines()[0].replace(" -- version ", " ") if said else "strace"


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
