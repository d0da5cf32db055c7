"""A bundle of what the embedded plan needs, made by the command as an administrator makes it."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ondam.deploy import bundle_archive
from ondam.deploy.bundle_manifest import Manifest
from ondam.places import places

ENGINES = ("faster_whisper", "llama_server", "piper", "espeak")

MODELS = ("whisper-base", "smollm2-135m-instruct", "joe")


@dataclass(frozen=True)
class Made:
    """A bundle, and how long it took to make."""

    path: Path
    signers: Path
    manifest: Manifest
    seconds: float


def make(folder: Path, key: Path) -> Made:
    """From the models of the tests' home; what is fetched is kept beside them."""
    path = folder / "ondam.bundle"
    command = [sys.executable, "-m", "ondam", "bundle", "create", "--out", str(path), "--sign-key", str(key)]
    command += ["--cache", str(places().data.parent / "bundle-cache")]
    command += [f"--engine={name}" for name in ENGINES]
    command += [f"--model={name}" for name in MODELS]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "The bundle will have about" in done.stderr
    with bundle_archive.opened(path) as file:
        manifest = bundle_archive.read_head(file, path).manifest
    return Made(path, key.with_name("signers"), manifest, time.monotonic() - began)


def hidden(*used: Path) -> list[Path]:
    """Folders of this machine where something of ours could be found; ``used``: what is needed of them."""
    ours = [Path(__file__).parents[2], Path.home(), Path("/opt"), Path("/root")]
    ours += [Path(sys.base_prefix), places().data.parent]
    return [
        path
        for path in ours
        if path.is_dir()
        and not any(each.is_relative_to(path) for each in used)
        and path not in map(Path, ("/", "/usr"))
    ]
