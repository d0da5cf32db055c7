"""Keeps one engine alive: launches it, waits for its first answer, watches it, decides what follows."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ondam.clients.json_text import one_line
from ondam.config import SupervisorConfig
from ondam.errors import EngineError, ModelError
from ondam.messages import Phrase, Phrases, message
from ondam.models.pickles import refuse_pickles
from ondam.places import Places
from ondam.planner.plan import PlannedEngine
from ondam.supervisor import restart
from ondam.supervisor.clock import Clock, within
from ondam.supervisor.comparison import differences, prices, worse
from ondam.supervisor.family import Identity
from ondam.supervisor.isolation import Isolation, isolation_of
from ondam.supervisor.launch import Home, launch
from ondam.supervisor.leash import NOT_CLOSED
from ondam.supervisor.log import Log
from ondam.supervisor.manifest import EngineFolder, comes_with_ondam
from ondam.supervisor.process import EngineProcess
from ondam.supervisor.readiness import NotYet, ask, ping
from ondam.supervisor.report import read_report
from ondam.supervisor.status import EngineState, EngineStatus, Fault, Fit

UNREPORTED_LOOK_S = 1.0
"""How often one that listens and has not reported is asked: it is most likely still loading."""

LOOK_EVERY_S = 0.05
"""How often a loading engine is looked at: the report is a file, looking at it costs microseconds."""

REPORT_WITHIN_S = 5.0
"""An engine that listens has written its report before; where it wraps another server, shortly after that one
has answered. Later than this, it reports nothing."""

LAST_WORDS_S = 0.5
"""How long the log of an engine that has ended is waited for: something that it started may hold it open."""

STALLED_S = 1.0
"""A ping overdue by more than this was not watched: the daemon was stopped, or the machine slept."""

SHORT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""What the machine says when it has no room for one more file, process or byte."""

LEAST_ROOM = 64 * 1024
"""Bytes that must be free where an engine puts its report and its socket."""

_log = logging.getLogger(__name__)

Tell = Callable[["Keeper", Fault | None], None]


@dataclass(frozen=True, slots=True)
class End:
    """How one life of the engine ended."""

    how: restart.Ending
    fault: Fault


def signal_name(number: int) -> str:
    """Those for real time have none but the first and the last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _short(error: BaseException | None) -> bool:
    """Whether the machine had no room. Looks behind what wraps it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in SHORT:
            return True
        error = error.__cause__
    return False


class Keeper:
    """One engine of the plan. ``run`` is its whole life; cancel it to stop the engine."""

    def __init__(
        self,
        planned: PlannedEngine,
        engine: EngineFolder,
        *,
        find_home: Callable[[EngineFolder], Home],
        places: Places,
        config: SupervisorConfig,
        clock: Clock,
        daemon: Identity,
        tell: Tell,
        berth: str = "",
    ) -> None:
        """``berth``: what its files' names end in, where another one of the same engine runs beside it."""
        self.planned = planned
        self.berth = berth
        self._name = planned.engine + berth
        self.state: EngineState = "starting"
        self.restarts = 0
        self._engine = engine
        self._find_home = find_home
        self._places = places
        self._config = config
        self._clock = clock
        self._daemon = daemon
        self._tell = tell
        self._log = Log(places.logs / f"engine-{self._name}.log")
        self._report_path = places.engine_report(self._name)
        self._socket = places.engine_socket(self._name)
        self._address = f"unix://{self._socket}"
        self._ended: Fault | None = None
        """Why it is not up."""
        self.last_end: Fault | None = None
        """How its last life ended, also when it is up again."""
        self._before: dict[str, Any] | None = None
        """What it got in an earlier life that was as planned; a later one may not be worse."""
        self._forget()

    def _forget(self) -> None:
        """What belongs to one life of the process."""
        self._process: EngineProcess | None = None
        self._started_at: float | None = None
        self._ready_at: float | None = None
        self._answered = 0
        self._unanswered = 0
        self._ill = 0
        self._stuck = asyncio.Event()
        self._most_mib = float("inf")
        self._rss_mib: float | None = None
        self._isolation: Isolation | None = None
        self._report: dict[str, Any] | None = None
        self._report_read_ns = 0
        self._answer_faults: tuple[Fault, ...] = ()
        self._report_faults: tuple[Fault, ...] = ()
        self._prices: tuple[Fault, ...] = ()

    def note_answer(self) -> None:
        """It has answered a request of the daemon's."""
        self._answered += 1
        self._unanswered = self._ill = 0

    def note_failure(self, code: str) -> None:
        """A request of the daemon's has failed with ``code``.

        Ends a ready engine that answers no more, or only what is no answer.
        """
        if self.state != "ready":
            return  # asked of the process before this one
        self._unanswered = restart.unanswered(self._unanswered, code)
        self._ill = restart.ill(self._ill, code)
        if self._unanswered >= restart.UNANSWERED_LIMIT or self._ill >= restart.ILL_LIMIT:
            self._stuck.set()

    def status(self) -> EngineStatus:
        """What is known of it now."""
        planned, report, now = self.planned, self._report or {}, self._clock.now()
        return EngineStatus(
            name=planned.engine,
            stage=planned.stage,
            state=self.state,
            address=self._address,
            spare=planned.spare,
            pid=self._process.pid if self._process and self._process.running else None,
            loads=report.get("weight_loads"),
            device=report.get("device"),
            model=planned.model,
            model_path=planned.model_path,
            policy=planned.policy,
            fit=self._fit(),
            rss_mib=self._rss_mib,
            isolation=self._isolation,
            restarts=self.restarts,
            uptime_s=0.0 if self._started_at is None else now - self._started_at,
            ready_s=0.0 if self._ready_at is None else now - self._ready_at,
            answers=self._answered,
            report=self._report,
            faults=self._faults(),
            log=self._log.path,
        )

    def _faults(self) -> tuple[Fault, ...]:
        own = () if self._ended is None else (self._ended,)
        return (*own, *self._answer_faults, *self._report_faults, *self._prices)

    def _fit(self) -> Fit:
        if self._ended is not None and self._ended.code == "engine_refused_by_plan":
            return "refused"
        if self._report_faults or self._answer_faults:
            silent = all(fault.code == "engine_reports_nothing" for fault in self._report_faults)
            return "unreported" if self._report_faults and silent else "differs"
        return "unknown" if self._report is None else "as_planned"

    async def run(self) -> None:
        """Keep the engine up until it has failed for good, or until cancelled: then it is stopped first."""
        config, past = self._config, restart.Past()
        policy = restart.Policy(
            config.backoff_first_s, config.backoff_last_s, config.restart_limit, config.restart_window_s
        )
        # A person started it: what it had before may have been changed on purpose.
        self._before = None
        try:
            while True:
                past = restart.started(past, self._clock.now())
                try:
                    end, ready_s = await self._live()
                except EngineError as error:
                    fault = Fault(error.code, error.facts)
                    if not _short(error.__cause__):
                        # Not built, no weights, refused: the same again would come to the same.
                        self._fail(fault)
                        return
                    self._ended, end, ready_s = fault, End("short", fault), 0.0
                except OSError as error:
                    facts = {"engine": self.planned.engine, "reason": str(error)}
                    fault = Fault("engine_not_started", facts)
                    if not _short(error):
                        # A folder that somebody removed under us.
                        self._fail(fault)
                        return
                    self._ended, end, ready_s = fault, End("short", fault), 0.0
                self.last_end = end.fault
                match restart.ended(policy, past, end.how, ready_s, self._clock.now()):
                    case restart.Again(wait_s, past):
                        self.restarts += 1
                        self._become("restarting", self._for_user("engine_restarting", end.fault))
                        await self._clock.sleep(wait_s)
                    case restart.GiveUp():
                        self._fail(end.fault)
                        return
        except asyncio.CancelledError:
            self._ended = None
            self._become("stopped")
            raise
        finally:
            self._log.close()

    def home(self) -> Home:
        """Where its program is. Raises EngineError where that, or its weights, are missing."""
        home = self._find_home(self._engine)
        if self.planned.model_path is not None and not self.planned.model_path.exists():
            facts = {"engine": self.planned.engine, "path": self.planned.model_path}
            raise EngineError("engine_model_missing", **facts)
        if self.planned.model_path is not None:
            try:
                refuse_pickles(self.planned.model_path)
            except ModelError as error:
                raise EngineError(error.code, **error.facts) from error
        return home

    async def _live(self) -> tuple[End, float]:
        """One life: how it ended, how long it was ready. Raises EngineError where a restart is of no use."""
        self._forget()
        home = self.home()
        # Left by the life before; the daemon's lock says that no other engine can be behind them.
        self._report_path.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)
        launched = launch(
            self.planned,
            manifest=self._engine.manifest,
            home=home,
            places=self._places,
            daemon=self._daemon,
            environ=os.environ,
            isolated=self._config.isolation != "off",
            required=self._config.isolation == "require",
            berth=self.berth,
        )
        self._started_at = self._clock.now()
        self._process = process = await EngineProcess.start(launched, self._log)
        try:
            self._become("loading")
            end = await self._unless_it_ends(process, self._serve(process))
            ready_s = 0.0 if self._ready_at is None else self._clock.now() - self._ready_at
            self._ended = end.fault
        finally:
            self._ready_at = None
            if self.state == "ready":
                # Nobody is to be sent here while it is being ended, which may take seconds.
                self.state = "restarting"
            await self._bury(process)
            self._process = self._started_at = self._rss_mib = None
        self._log.note(end.fault.code)
        if end.how == "died" and not ready_s and not self._room():
            end = End("short", end.fault)
        return end, ready_s

    def _room(self) -> bool:
        """Whether an engine that starts now can write what it has to."""
        try:
            found = os.statvfs(self._places.runtime)
        except OSError:
            return True  # not there: that is another fault, and told as such
        return found.f_bavail * found.f_frsize >= LEAST_ROOM

    async def _unless_it_ends(self, process: EngineProcess, serving: Coroutine[Any, Any, End]) -> End:
        life, service = asyncio.ensure_future(process.wait()), asyncio.ensure_future(serving)
        try:
            await asyncio.wait({life, service}, return_when=asyncio.FIRST_COMPLETED)
            # A question that broke because the engine died under it: the death is the news.
            if not life.done() and (service.exception() or service.result().how == "died"):
                await asyncio.wait({life}, timeout=LOOK_EVERY_S)
            return await self._exit(life.result()) if life.done() else service.result()
        finally:
            for task in (life, service):
                task.cancel()
            await asyncio.gather(life, service, return_exceptions=True)

    async def _serve(self, process: EngineProcess) -> End:
        if (end := await self._get_ready()) is not None:
            return end
        return await self._watch(process)

    async def _get_ready(self) -> End | None:
        manifest, planned = self._engine.manifest, self.planned
        assert self._started_at is not None
        until = self._started_at + manifest.readiness.timeout_s
        asked = False
        while not asked:
            left = until - self._clock.now()
            reported = self._report_path.exists()
            try:
                # A socket is no sign of readiness, but without a report it must not be waited for in vain.
                if reported or self._socket.exists():
                    asking = ask(
                        self._address, manifest.protocol, planned.stage, planned.model, planned.language
                    )
                    self._answer_faults = await within(self._clock, left, asking)
                    asked = True
                elif left <= 0:
                    raise TimeoutError
                else:
                    await self._clock.sleep(LOOK_EVERY_S)
            except NotYet:
                await self._clock.sleep(LOOK_EVERY_S if reported else UNREPORTED_LOOK_S)
            except TimeoutError:
                facts = {"engine": planned.engine, "seconds": f"{manifest.readiness.timeout_s:g}"}
                return End("slow", Fault("engine_slow", facts))
            except EngineError as error:
                return End("died", Fault(error.code, error.facts))
        await self._await_report()
        self._read_report()
        self._refuse_if_required()
        if self._report is not None and not self._report_faults:
            self._before = self._report
        assert self._process is not None
        self._isolation = isolation_of(self._process.pid) or Isolation("open")
        self._refuse_if_open()
        self._rss_mib = await self._process.memory_mib()
        needs_mib = await asyncio.to_thread(self._needs_mib)
        self._most_mib = restart.most_mib(self._rss_mib, needs_mib, self._config.leak_mib)
        self._ready_at = self._clock.now()
        self._ended = None
        kept = self._config.keep_output
        # From now on it is asked what people say.
        if kept == "none" or (kept == "own" and not comes_with_ondam(self._engine)):
            self._log.hush()
        self._become("ready", self._for_user("engine_back") if self.restarts else None)
        for fault in self._faults():
            self._become("ready", fault)
        return None

    async def _watch(self, process: EngineProcess) -> End:
        answered = self._answered
        while True:
            with contextlib.suppress(TimeoutError):  # the usual: nothing was wrong until the next ping
                await within(self._clock, self._config.ping_every_s, self._stuck.wait())
            if self._stuck.is_set():
                stuck = self._unanswered >= restart.UNANSWERED_LIMIT
                facts = {
                    "engine": self.planned.engine,
                    "requests": self._unanswered if stuck else self._ill,
                }
                return End("hung", Fault("engine_stuck" if stuck else "engine_ill", facts))
            if not await self._responds():
                facts = {"engine": self.planned.engine, "seconds": f"{self._config.ping_timeout_s:g}"}
                return End("hung", Fault("engine_hung", facts))
            self._rss_mib = await process.memory_mib() or self._rss_mib
            if (leak := self._leak(answered)) is not None:
                return End("hung", leak)
            answered = self._answered
            before = self._report_faults
            if self._read_report():
                self._refuse_if_required()
                for fault in (*(f for f in self._report_faults if f not in before), None):
                    self._become("ready", fault)

    async def _responds(self) -> bool:
        """Whether it answers a ping in time. While the daemon itself may open no file nobody can say."""
        protocol, timeout_s = self._engine.manifest.protocol, self._config.ping_timeout_s
        since = self._clock.now()
        while True:
            left = since + timeout_s - self._clock.now()
            try:
                if await within(self._clock, left, ping(self._address, protocol)):
                    return True
            except TimeoutError:
                if self._clock.now() - since < timeout_s + STALLED_S:
                    return False
                since = self._clock.now()
            except NotYet as error:
                if _short(error.__cause__):
                    since = self._clock.now()
            except EngineError:
                pass  # a broken answer: asked again until the time is up, as with a closed socket
            if left <= 0:
                return False
            await self._clock.sleep(LOOK_EVERY_S)

    def _leak(self, answered: int) -> Fault | None:
        """It takes far more memory than it should. ``answered``: how often it had when last looked at.

        One that is being used is ended only when it takes as much again.
        """
        rss_mib = self._rss_mib or 0.0
        if rss_mib <= self._most_mib or (self._answered != answered and rss_mib <= 2 * self._most_mib):
            return None
        return Fault(
            "engine_leaks",
            {"engine": self.planned.engine, "mib": round(rss_mib), "most": round(self._most_mib)},
        )

    def _needs_mib(self) -> float:
        """What it may take by its plan: its weights may be mapped, and come into memory little by little."""
        planned, path = self.planned, self.planned.model_path
        files = [] if path is None else [path] if path.is_file() else list(path.rglob("*"))
        weights_mib = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
        return max(self._engine.manifest.needs.memory_mib, planned.memory_gib * 1024) + weights_mib

    async def _await_report(self) -> None:
        """Until it is there and whole, for a moment: the engine has answered."""
        until = self._clock.now() + REPORT_WITHIN_S
        while self._clock.now() < until:
            with contextlib.suppress(EngineError):  # not there yet, or half-written: told if it stays so
                read_report(self._report_path, self.planned.engine)
                return
            await self._clock.sleep(LOOK_EVERY_S)

    def _read_report(self) -> bool:
        """Read the report if it is new. Returns whether it was."""
        try:
            written_ns = self._report_path.stat().st_mtime_ns
        except OSError:
            written_ns = -1  # told below, by the reading
        if written_ns == self._report_read_ns:
            return False
        self._report_read_ns = written_ns
        try:
            self._report = read_report(self._report_path, self.planned.engine)
            self._report_faults = differences(self.planned, self._report)
            self._prices = prices(self.planned, self._report)
            if self._before is not None:
                self._report_faults += worse(self.planned, self._before, self._report)
        except EngineError as error:
            self._report, self._report_faults, self._prices = None, (self._unreadable(error),), ()
        for fault in (*self._report_faults, *self._prices):
            self._log.note(message(fault.code, "en", **fault.facts).text)
        return True

    def _unreadable(self, error: EngineError) -> Fault:
        name = self._report_path.name
        facts = {"engine": self.planned.engine, "what": "report", "wanted": name, "got": None, "why": ""}
        if not self._report_path.exists():
            return Fault("engine_reports_nothing", facts)
        return Fault(error.code, {**facts, **error.facts})

    def _refuse_if_required(self) -> None:
        found = (*self._answer_faults, *self._report_faults)
        if found and self.planned.policy == "require":
            reasons = Phrases(tuple(Phrase(fault.code, **fault.facts) for fault in found), between=" ")
            raise EngineError("engine_refused_by_plan", engine=self.planned.engine, reason=reasons)

    def _refuse_if_open(self) -> None:
        if self._config.isolation == "require" and not (self._isolation or Isolation("open")).closed:
            raise EngineError("engine_not_isolated", engine=self.planned.engine)

    async def _bury(self, process: EngineProcess) -> None:
        stopping = asyncio.ensure_future(process.stop(self._config.stop_timeout_s))
        interrupted: asyncio.CancelledError | None = None
        while not stopping.done():
            try:
                await asyncio.wait({stopping})
            except asyncio.CancelledError as error:
                interrupted = error  # bounded; nothing may be left behind, however often we are told to stop
        left = stopping.result()
        self._socket.unlink(missing_ok=True)
        self._report_path.unlink(missing_ok=True)
        if left:
            _log.error("processes %s of %s cannot be ended", left, self.planned.engine)
        if interrupted is not None:
            raise interrupted

    async def _exit(self, status: int) -> End:
        if status < 0:
            facts = {"engine": self.planned.engine, "signal": signal_name(-status)}
            return End("died", Fault("engine_killed", facts))
        if status == NOT_CLOSED and self._config.isolation == "require":
            raise EngineError("engine_not_isolated", engine=self.planned.engine)
        said = await self._last_words()
        ended = {"engine": self.planned.engine, "status": status, "said": said}
        return End("died", Fault("engine_exited", ended))

    async def _last_words(self) -> Phrase | str:
        """Of one that never became ready: it was not asked yet what people say."""
        if self._ready_at is not None:
            return ""
        line = one_line(await asyncio.to_thread(self._log.last_line, LAST_WORDS_S))
        return Phrase("engine_last_words", line=line) if line else ""

    def _for_user(self, what: str, why: Fault | None = None) -> Fault:
        """``engine_down`` and the like, in the words of what the user loses: hearing, thinking, voice."""
        role = "spare" if self.planned.spare else self.planned.stage
        return Fault(f"{what}_{role}", {"engine": self.planned.engine, "why": why.code if why else ""})

    def _fail(self, fault: Fault) -> None:
        self._ended = self.last_end = fault
        self._become("failed", self._for_user("engine_down", fault))

    def _become(self, state: EngineState, fault: Fault | None = None) -> None:
        if state != self.state or fault:
            told = {"engine": self.planned.engine, "stage": self.planned.stage, "state": state}
            _log.info(
                "%s: %s%s",
                self.planned.engine,
                state,
                f" ({fault.code})" if fault else "",
                extra={"fields": {**told, "code": fault.code} if fault else told},
            )
        self.state = state
        self._tell(self, fault)
