from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pydantic
import pytest
from tests.engine_contract.launched import Launched

from ondam.config.schema import Table, check
from ondam.models.card import Sha256
from ondam.models.store import sha256_of
from ondam.supervisor.comparison import differences


class Weights(Table):
    id: str
    path: str
    sha256: Sha256


class Report(Table):
    """docs/engines.md, field by field; nothing more and nothing less."""

    schema_: int = pydantic.Field(alias="schema")
    engine: str
    pid: int
    started_at: str
    model: Weights | None
    weight_loads: int
    device: str
    dtype: str | None
    quantization: str | None
    threads: int
    providers: dict[str, list[str]]
    cuda_graphs: bool | None
    context_length: int | None
    memory_mib: int
    versions: dict[str, str]
    nodes: dict[str, dict[str, int]] = pydantic.Field(default={})
    graph_mode: str | None = None
    kv_dtype: str | None = None
    gpu_memory_mib: int | None = None
    why: dict[str, str] = pydantic.Field(default={})
    network: str | None = None


def test_every_field_of_the_report_is_there_and_of_its_type(engine: Launched) -> None:
    report = check(Report, engine.report(), engine.report_path)
    assert report.schema_ == 1
    assert report.engine == engine.name
    assert report.versions
    assert all(report.providers.values()), "a session without a provider computes nowhere"
    assert engine.report_path.stat().st_mode & 0o077 == 0


def test_the_report_tells_of_this_very_process(engine: Launched) -> None:
    report = check(Report, engine.report(), engine.report_path)
    born = datetime.fromtimestamp(psutil.Process(engine.pid).create_time(), UTC)
    assert report.pid == engine.pid
    started = datetime.fromisoformat(report.started_at)
    assert timedelta(seconds=-2) < started - born < timedelta(seconds=60)


def test_the_report_shows_what_was_planned(engine: Launched) -> None:
    assert differences(engine.prepared.planned, engine.report()) == ()


def test_the_weights_are_those_of_the_file_and_were_loaded_once(engine: Launched) -> None:
    report = check(Report, engine.report(), engine.report_path)
    given = engine.prepared.planned.model_path
    if given is None:
        assert (report.model, report.weight_loads) == (None, 0)
        return
    assert report.model is not None
    read = Path(report.model.path)
    assert read == given or given in read.parents
    assert report.model.sha256 == sha256_of(read)
    assert report.weight_loads == 1


def test_the_memory_in_the_report_is_real_and_as_promised(engine: Launched) -> None:
    report = check(Report, engine.report(), engine.report_path)
    assert report.memory_mib == pytest.approx(engine.rss_mib(), rel=0.5)
    assert report.memory_mib <= 1.25 * engine.prepared.folder.manifest.needs.memory_mib


def test_the_report_was_there_before_the_socket(engine: Launched) -> None:
    # The change time moves with a rename, so that it tells when a file got its name.
    assert engine.report_path.stat().st_ctime_ns <= engine.socket.stat().st_ctime_ns


def test_nobody_else_may_use_the_socket(engine: Launched) -> None:
    assert engine.socket.stat().st_mode & 0o077 == 0
