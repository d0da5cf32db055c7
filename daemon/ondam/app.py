"""Wires the daemon together, starts it in order and stops it in reverse."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import signal
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from ondam.assistant import Assistant
from ondam.config import Config
from ondam.control.exporter import Exporter
from ondam.control.server import Server
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


def run(config: Config, places: Places, config_file: Path | None = None) -> int:
    """Be the daemon until asked to end. Returns the exit status: 0 when asked, 1 when it broke down.

    ``config_file``: where ``config`` was read from, if not from the usual place. Raises OndamError when it
    cannot start.
    """
    _log_to(places.logs)
    return asyncio.run(_serve(config, places, config_file or places.config_file))


async def _serve(config: Config, places: Places, config_file: Path) -> int:
    stop = asyncio.Event()
    broken = False

    def end(*, asked: bool) -> None:
        nonlocal broken
        broken = broken or not asked
        stop.set()

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
        recorder = Recorder(
            places.journal, keep_text=config.journal.keep_text, keep_days=config.journal.keep_days
        )
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
        )
        server = Server(assistant, places.control_socket)
        await server.start()
        started.push_async_callback(server.stop)
        started.push_async_callback(assistant.close)
        if config.metrics.where:
            exporter = Exporter(assistant, config.metrics.where)
            started.push_async_callback(exporter.stop)
            await exporter.start()
        fleet.launch(plan)
        await assistant.start()
        log.info("listening on %s", places.control_socket)
        await stop.wait()
        log.info("ending")
    return 1 if broken else 0


def _log_to(folder: Path) -> None:
    """Log to stderr (the journal of a service) and to a bounded file. Never what was said or answered."""
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handlers.append(
        logging.handlers.RotatingFileHandler(
            folder / "daemon.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
    )
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=handlers,
        force=True,
    )
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
