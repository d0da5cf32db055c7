"""Small bundles, made once; places to install them into."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.bundle.real import Made, make
from tests.bundle.small import Small, small

from ondam.deploy.bundle_versions import Versions


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return small(tmp_path_factory.mktemp("one"), "1.0")


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return small(tmp_path_factory.mktemp("two"), "2.0")


@pytest.fixture(autouse=True)
def quick_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for what all programs of the machine have written, and matters only when the power fails."""
    monkeypatch.setattr(os, "sync", lambda: None)


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path / "자리 root")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key of an operator, beside it ``signers`` that lists it."""
    path = tmp_path_factory.mktemp("key") / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ops@example.org", "-f", str(path)]
    subprocess.run(command, check=True)
    public = path.with_suffix(".pub").read_text("utf-8")
    path.with_name("signers").write_text(f"ops@example.org {public}", "utf-8")
    return path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Made:
    return make(tmp_path_factory.mktemp("made"), key)
