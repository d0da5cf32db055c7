"""``kill -9`` anywhere in an installation: the version that ran still runs, and the next one ends well."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.bundle.small import ENVIRONMENT, Small, first, install, says

from ondam.deploy.bundle_manifest import MARKER
from ondam.deploy.bundle_versions import Versions

SEED = 20_261_130
ANYWHERE = 6
"""Kills at something that is asked of the file system, wherever that is."""

AROUND = range(-6, 2)
"""And at each thing around the one that switches."""

MOMENTS = 6
"""And at some moment, whatever is going on: in uv, too. Twenty in all."""

MOST_TRIES = 100
"""A point that is drawn may come too late: where the last try left something to go on with, less is done."""


def arguments(bundle: Small, versions: Versions) -> list[object]:
    return [bundle.path, "--unsigned", "--root", versions.root, "--bin", versions.root.parent / "bin"]


@dataclass(frozen=True)
class Course:
    """Of a whole installation beside another version."""

    steps: int
    """How many things it asks of the file system."""
    switching: int
    """Which of them switches, counted from the marker."""
    seconds: float


@pytest.fixture(scope="module")
def course(one: Small, two: Small, tmp_path_factory: pytest.TempPathFactory) -> Course:
    versions = Versions(tmp_path_factory.mktemp("measured"))
    install(one, versions)
    began = time.monotonic()
    done = subprocess.run(
        first(0, *arguments(two, versions)), env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    steps, marker, switching = map(int, done.stdout.splitlines()[-1].split())
    assert 50 < marker < switching < steps
    return Course(steps, switching - marker, time.monotonic() - began)


def test_the_version_that_runs_still_runs_and_the_next_installation_ends_well(
    one: Small, two: Small, tmp_path: Path, course: Course
) -> None:
    versions = Versions(tmp_path / "root")
    install(one, versions)
    chance = random.Random(SEED)
    points: list[Callable[[], str | float]] = [lambda: str(chance.randint(1, course.steps))] * ANYWHERE
    points += [partial("+{}".format, course.switching + step) for step in AROUND]
    points += [lambda: chance.uniform(0.05, course.seconds)] * MOMENTS
    chance.shuffle(points)
    for _ in range(MOST_TRIES):
        if not points:
            break
        point = points[-1]()
        if kill_at(point, two, versions):
            points.pop()
        # Half-way there is no new version; behind the switch it is whole.
        expected = {one.manifest.identity: "ondam 1.0", two.manifest.identity: "ondam 2.0"}
        current = versions.current()
        assert current is not None and says(versions) == expected[current], f"killed at {point}"
        if (versions.folder(two.manifest.identity) / MARKER).exists():
            versions.switch(versions.named(one.manifest.identity))
            versions.remove(versions.named(two.manifest.identity))
    assert points == [], "not killed twenty times"
    install(two, versions)
    assert says(versions) == "ondam 2.0"
    assert versions.previous() == one.manifest.identity
    assert versions.leftovers() == []
    model = versions.folder(two.manifest.identity) / "models/toy/model.bin"
    assert model.read_bytes() == two.sources["models/toy/model.bin"].read_bytes()


def kill_at(point: str | float, bundle: Small, versions: Versions) -> bool:
    """Whether the installation was killed before it was done."""
    step = point if isinstance(point, str) else 0
    with subprocess.Popen(
        first(step, *arguments(bundle, versions)),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        if isinstance(point, float):
            try:
                process.wait(point)
            except subprocess.TimeoutExpired:
                process.kill()
        return process.wait(60) == -signal.SIGKILL
