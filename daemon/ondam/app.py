"""Wires the daemon together, starts it in order and stops it in reverse."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import logging.handlers
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from ondam.assistant import Assistant
from ondam.config import Config
from ondam.control.exporter import Exporter
from ondam.control.server import Server
from ondam.deploy.journald import JournalHandler, to_journal
from ondam.deploy.migrate_journal import migrate_journal
from ondam.deploy.notify import Manager
from ondam.deploy.service_states import ServiceStates
from ondam.errors import ConfigError, OndamError
from ondam.journal.believed import Believed
from ondam.journal.keep import Keep
from ondam.journal.recorder import Recorder
from ondam.models.catalog import Catalog
from ondam.models.lookup import WholeModels
from ondam.models.store import Store
from ondam.pipeline.silero import Silero
from ondam.pipeline.smart_turn import SmartTurn
from ondam.places import Places
from ondam.planner import measured
from ondam.planner.choose import choose
from ondam.planner.facts import Facts
from ondam.planner.plan import Plan
from ondam.planner.probe import probe
from ondam.quiet import be_quiet, no_core_dumps, quiet_loop, told
from ondam.supervisor.fleet import Fleet
from ondam.supervisor.instance import claim
from ondam.supervisor.manifest import EngineFolder, engine_roots, find_engines

log = logging.getLogger(__name__)

VAD_MODEL = "silero-vad"
END_OF_TURN_MODEL = "smart-turn"

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

LOG_BYTES = 2_000_000
LOG_FILES = 3


def installed_engines(places: Places) -> dict[str, EngineFolder]:
    """Every engine that can be found from here."""
    return find_engines(engine_roots(places.user_engines))


def planned(config: Config, places: Places) -> Plan:
    """The plan for this machine. Raises ConfigError or ModelError where it cannot be carried out."""
    return planned_with_facts(config, places)[0]


def planned_with_facts(config: Config, places: Places) -> tuple[Plan, Facts]:
    """The plan for this machine, and what it was made for. Raises ConfigError or ModelError."""
    engines = installed_engines(places)
    store = Store(places.models)
    catalog = Catalog.union(engines, store.imported())
    facts = probe()
    models, found = WholeModels(catalog, store), measured.load(places)
    return choose(facts, config, engines, models, measured=found), facts


def run(
    config: Config,
    places: Places,
    config_file: Path | None = None,
    read: Callable[[], Config] | None = None,
) -> int:
    """Be the daemon until asked to end. Returns the exit status: 0 when asked, 1 when it broke down.

    ``config_file``: where ``config`` was read from, if not from the usual place; ``read`` reads it
    again, with what the command line laid over it. Raises OndamError when it cannot start.
    """
    # What daemon and engines write is the user's own; the control socket says for itself who may.
    os.umask(0o077)
    be_quiet()
    if not config.privacy.core_dumps:
        no_core_dumps()
    _log_to(places.logs)
    manager = Manager.of(os.environ)
    if manager is not None:
        faulthandler.enable()  # a watchdog ends us with SIGABRT: where each thread was, and no values
    try:
        return asyncio.run(_serve(config, places, config_file or places.config_file, read, manager))
    except OndamError as error:
        if manager is not None:
            manager.tell(STATUS=told(error))
        raise


async def _serve(
    config: Config,
    places: Places,
    config_file: Path,
    read: Callable[[], Config] | None,
    manager: Manager | None,
) -> int:
    stop = asyncio.Event()
    broken = False

    def end(*, asked: bool) -> None:
        nonlocal broken
        broken = broken or not asked
        stop.set()

    quiet_loop(asyncio.get_running_loop())
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, partial(end, asked=True))
    # What cannot be mended by waiting is found before anything is started.
    plan = planned(config, places)
    engines = installed_engines(places)
    catalog = Catalog.union(engines)
    store = Store(places.models)
    vad = store.path(catalog.card(VAD_MODEL))
    judged = config.endpoint.mode == "smart_turn"
    end_of_turn = SmartTurn(store.path(catalog.card(END_OF_TURN_MODEL))) if judged else None
    async with AsyncExitStack() as started:
        swept = started.enter_context(claim(places))
        if swept.ended:
            log.warning("ended %d processes that an earlier daemon left", swept.ended)
        if (kept := migrate_journal(places.journal)) is not None:
            log.info("the journal of an earlier version was taken over; the file as it was is %s", kept)
        recorder = Recorder(places.journal, Keep.of(config, places), now=Believed())
        started.callback(recorder.close)
        fleet = Fleet(places, config.supervisor, engines)
        started.push_async_callback(fleet.stop)
        fleet.subscribe(measured.Learning(places, lambda: fleet.crew.plan))
        assistant = Assistant(
            config=config,
            places=places,
            planner=partial(planned_with_facts, places=places),
            config_file=config_file,
            fleet=fleet,
            engines=engines,
            recorder=recorder,
            voice=Silero(vad).another,
            end_of_turn=end_of_turn,
            end=end,
            read=read,
        )
        server = Server(assistant, places.control_socket, group=places.group)
        await server.start()
        started.push_async_callback(server.stop)
        started.push_async_callback(assistant.close)
        if config.metrics.where:
            exporter = Exporter(assistant, config.metrics.where)
            started.push_async_callback(exporter.stop)
            await exporter.start()
        fleet.launch(plan)
        if manager is not None:
            service = ServiceStates(
                manager, engines=fleet.status, stuck=assistant.stuck, language=config.spoken_language
            )
            started.push_async_callback(service.stop)
            service.start()
        await assistant.start()
        log.info("listening on %s", places.control_socket)
        await stop.wait()
        log.info("ending")
    return 1 if broken else 0


class _LogFile(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk loses lines here; stderr has them, and must not be filled with a traceback for each."""


def _log_to(folder: Path) -> None:
    """Log to stderr (the journal of a service) and to a bounded file. Never what was said or answered."""
    to_person: logging.Handler = logging.StreamHandler()
    if to_journal():
        to_person = JournalHandler(instead=to_person)
        to_person.setFormatter(logging.Formatter("%(message)s"))  # the journal has all else in fields
    handlers = [to_person]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:  # a HOME that is read-only, or belongs to somebody else
        raise ConfigError("folder_unwritable", path=folder, reason=error.strerror or error) from error
    handlers.append(
        _LogFile(folder / "daemon.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    )
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=handlers,
        force=True,
    )
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    # It tells of every request that is no HTTP, at length: a bad client would push all else out of the log.
    # What breaks down in our own handlers the control server tells itself.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
