"""Who may import what. The folders are the architecture; this holds them to it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DAEMON = ROOT / "daemon/ondam"
ENGINES = ROOT / "engines/ondam_engines"
UI = ROOT / "ui/ondam_ui"

IO = {
    "asyncio", "socket", "subprocess", "threading", "multiprocessing", "selectors", "ssl", "http", "urllib",
    "sqlite3", "time", "datetime", "os", "pathlib", "tempfile", "shutil", "io", "signal", "random", "logging",
    "aiohttp", "httpx2", "sounddevice", "soundfile", "onnxruntime", "psutil", "wyoming",
}  # fmt: skip

PURE = [
    *sorted((DAEMON / "dialog").glob("*.py")),
    *sorted((DAEMON / "speech").rglob("*.py")),
    DAEMON / "planner/changeover.py",
    DAEMON / "supervisor/restart.py",
    DAEMON / "journal/modes.py",
    DAEMON / "journal/steady.py",
    DAEMON / "journal/figures.py",
    DAEMON / "journal/findings.py",
    DAEMON / "journal/report.py",
    DAEMON / "measure/budget.py",
    DAEMON / "measure/budget_answer.py",
    DAEMON / "measure/budget_own.py",
    DAEMON / "measure/queueing.py",
    DAEMON / "measure/waterfall.py",
    DAEMON / "measure/compare.py",
    DAEMON / "measure/plot.py",
    DAEMON / "measure/distribution.py",
    DAEMON / "measure/endpoints.py",
]


def imported(path: Path) -> Iterator[str]:
    """Dotted names of what ``path`` imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("path", PURE, ids=lambda p: str(p.relative_to(DAEMON)))
def test_what_decides_reads_no_clock_and_does_no_io(path: Path) -> None:
    assert {name.partition(".")[0] for name in imported(path)} & IO == set()


def test_the_planner_chooses_without_io() -> None:
    # A Path as a value is no I/O; opening one is.
    for name in (
        "arithmetic",
        "candidates",
        "choose",
        "correction",
        "facts",
        "gate",
        "ladder",
        "oncards",
        "rooms",
        "wishes",
    ):
        names = {name.partition(".")[0] for name in imported(DAEMON / "planner" / f"{name}.py")}
        assert names & (IO - {"pathlib"}) == set(), name


@pytest.mark.parametrize("path", sorted(ENGINES.rglob("*.py")), ids=lambda p: str(p.relative_to(ENGINES)))
def test_engines_never_import_the_daemon(path: Path) -> None:
    assert not [name for name in imported(path) if name.partition(".")[0] == "ondam"]


@pytest.mark.parametrize("path", sorted(UI.rglob("*.py")), ids=lambda p: str(p.relative_to(UI)))
def test_the_ui_sees_the_daemon_through_its_control_client(path: Path) -> None:
    allowed = ("ondam.control.client", "ondam.control.wire", "ondam.messages")
    ours = [name for name in imported(path) if name.partition(".")[0] == "ondam"]
    assert [name for name in ours if not name.startswith(allowed)] == []


@pytest.mark.parametrize("path", sorted(DAEMON.rglob("*.py")), ids=lambda p: str(p.relative_to(DAEMON)))
def test_the_daemon_looks_at_no_engines_code(path: Path) -> None:
    engines = [name for name in imported(path) if name.partition(".")[0] == "ondam_engines"]
    # The one place that asks where the folder is.
    assert engines == (["ondam_engines"] if path == DAEMON / "supervisor/manifest.py" else [])


def test_the_daemon_process_loads_nothing_that_fetches() -> None:
    code = (
        "import sys, ondam.app;"
        "print(*sorted(set(sys.modules) & {'unearth', 'httpx', 'httpx2', 'requests', 'ondam.models.fetch',"
        " 'huggingface_hub', 'ondam.models.hub', 'pynvml',"
        " 'ondam.models.registry', 'ondam.deploy.prepare', 'torch', 'uv'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}
    assert [p for p in DAEMON.rglob("*.py") if p.stem in drawers] == []
