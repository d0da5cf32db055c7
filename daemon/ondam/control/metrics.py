"""The turns of this daemon as Prometheus text. Holds numbers only, nothing that was said."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from ondam.control import wire
from ondam.journal.figures import HEARD

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

AROUND = (0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Upper bounds of buckets, as multiples of the budget: finest where it decides."""

STAGE_SHARES = (1 / 160, 1 / 40, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 1.0, 1.5, 2.0, 5.0)
"""Of one stage, a part of the same budget."""

ANSWER_S = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60)
"""Whole answers last as long as they are spoken."""


class Metrics:
    """Counts turns as they end. ``budget_ms``: what first audio may take."""

    def __init__(self, budget_ms: float) -> None:
        budget_s = budget_ms / 1000
        # A second line for every counter, of its birth: the daemon's uptime says it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._first_audio = Histogram(
            "ondam_first_audio_seconds",
            "From the user's last voiced sample to the first answer sample at the speaker.",
            ["population"],
            buckets=[round(share * budget_s, 6) for share in AROUND],
            registry=self._registry,
        )
        self._stage = Histogram(
            "ondam_stage_seconds",
            "What was waited for in each of the seven stages of first audio.",
            ["stage", "population"],
            buckets=[round(share * budget_s, 6) for share in STAGE_SHARES],
            registry=self._registry,
        )
        self._answer = Histogram(
            "ondam_answer_seconds",
            "From the user's last voiced sample to the last answer sample at the speaker.",
            ["population"],
            buckets=ANSWER_S,
            registry=self._registry,
        )
        self._turns = self._counter("turns", "Turns that ended.", "outcome", "population")
        self._over = self._counter("turns_over_budget", "Answered over measure.budget_ms.", "population")
        self._drafts = self._counter("drafts", "Answers begun before the endpoint.", "fate")
        self._tokens = self._counter(
            "tokens", "Tokens of the language engine; dropped: generated for drafts in vain.", "kind"
        )
        self._calls = self._counter("llm_calls", "Requests to the language engine.")
        self._taken_back = self._counter("endpoints_taken_back", "Endpoints after which the user went on.")
        self._underruns = self._counter("underruns", "How often the speaker ran dry in a turn.")
        self._moment = _Moment()
        self._registry.register(self._moment)
        # process_resident_memory_bytes, process_open_fds and the like, as every Prometheus client names them.
        ProcessCollector(registry=self._registry)

    def turn(self, turn: wire.Turn) -> None:
        """Count one that has ended."""
        population = turn["population"]
        self._turns.labels(turn["outcome"], population).inc()
        drafts, tokens = turn["drafts"], turn["tokens"]
        self._drafts.labels("made").inc(drafts["made"])
        self._drafts.labels("dropped").inc(drafts["dropped"])
        for kind, count in (*tokens.items(), ("dropped", drafts["tokens"])):
            if isinstance(count, int):
                self._tokens.labels(kind).inc(count)
        self._calls.inc(turn["llm_calls"])
        self._taken_back.inc(turn["taken_back"])
        self._underruns.inc(turn["underruns"])
        if turn["outcome"] not in HEARD or turn["first_audio_ms"] is None:
            return  # like reports: what was not answered is in no distribution
        self._first_audio.labels(population).observe(max(0.0, turn["first_audio_ms"]) / 1000)
        if turn["answer_ms"] is not None and turn["outcome"] == "answered":
            self._answer.labels(population).observe(turn["answer_ms"] / 1000)
        for stage, ms in turn["stages_ms"].items():
            if isinstance(ms, float):
                # Below 0 where the endpoint came before the last voice; a sum has to grow all the same.
                self._stage.labels(stage, population).observe(max(0.0, ms) / 1000)
        if turn["over_budget"]:
            self._over.labels(population).inc()

    def text(self, status: wire.Status, lost: int, tasks: int = 0) -> bytes:
        """Everything, in the text format 0.0.4.

        ``lost``: turns that the journal could not write; ``tasks``: of the event loop.
        """
        self._moment.status, self._moment.lost, self._moment.tasks = status, lost, tasks
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"ondam_{name}", text, labels, registry=self._registry)


class _Moment:
    """What is true when it is asked for."""

    status: wire.Status | None = None
    lost = 0
    tasks = 0

    def collect(self) -> Iterator[Metric]:
        """See ``prometheus_client.registry.Collector``."""
        status = self.status
        if status is None:
            return
        facts = {"version": status["version"], "conditions": str(status["conditions"].get("name"))}
        yield InfoMetricFamily("ondam", "Version, and the name of the conditions now.", facts)
        yield GaugeMetricFamily("ondam_uptime_seconds", "Since the daemon began.", status["uptime_s"])
        yield GaugeMetricFamily("ondam_journal_lost_turns", "Turns that could not be written.", self.lost)
        yield GaugeMetricFamily("ondam_faults", "Faults shown at the moment.", len(status["faults"]))
        yield GaugeMetricFamily("ondam_tasks", "Of the daemon's event loop, now.", self.tasks)
        yield GaugeMetricFamily("ondam_threads", "Of the daemon, now.", threading.active_count())
        up = GaugeMetricFamily("ondam_engine_ready", "1 when it can be asked.", labels=("engine", "stage"))
        restarts = GaugeMetricFamily(
            "ondam_engine_restarts", "Since the daemon began.", labels=("engine", "stage")
        )
        differs = GaugeMetricFamily(
            "ondam_engine_faults", "What it got otherwise than planned, and more.", labels=("engine", "stage")
        )
        fits = GaugeMetricFamily(
            "ondam_engine_as_planned", "1 when it got what the plan asked for.", labels=("engine", "stage")
        )
        memory = GaugeMetricFamily(
            "ondam_engine_resident_bytes", "With everything it started.", labels=("engine", "stage")
        )
        for engine in status["engines"]:
            labels = (engine["name"], engine["stage"])
            up.add_metric(labels, engine["state"] == "ready")
            restarts.add_metric(labels, engine["restarts"])
            differs.add_metric(labels, len(engine["faults"]))
            fits.add_metric(labels, engine["fit"] == "as_planned")
            if engine["rss_mib"] is not None:
                memory.add_metric(labels, engine["rss_mib"] * 2**20)
        yield from (up, restarts, differs, fits, memory)
