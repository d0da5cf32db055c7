"""A daemon whose engines are the misbehaving ones, kept by its own supervisor: whole turns on them.

Each engine looks with every request at a file that says what it is to do wrong (``mood``).
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.scenarios.house import House, prepared_data

from ondam.supervisor.manifest import read_engine
from ondam.supervisor.stamp import Stamp
from ondam.types import Stage

FOLDER = Path(__file__).parent

ENGINES: Mapping[Stage, str] = {"stt": "fake_stt", "llm": "fake_llm", "tts": "fake_tts"}

WORDS = "What time is it?"
ANSWER = "It is three o'clock."

SETTINGS = {
    "language": "en",
    **{f"{stage}.engine": name for stage, name in ENGINES.items()},
    "stt.model": "/dev/null",
    "llm.model": "/dev/null",
    # Everything that the shipped settings wait for, sooner: what is tested is the order, not the patience.
    "supervisor.backoff_first_s": "0.1",
    "supervisor.backoff_last_s": "0.5",
    "supervisor.restart_limit": "100",
    "supervisor.ping_every_s": "0.5",
    "supervisor.ping_timeout_s": "1.0",
    "supervisor.leak_mib": "100",
    "llm.first_token_timeout_s": "1.5",
    "llm.idle_timeout_s": "1.5",
    "answer.within_s": "4",
}


def staffed(home: Path, settings: Mapping[str, str] | None = None, **how: object) -> House:
    """A house with the three fakes; not started yet. ``settings``: over those above; ``how``: House's own."""
    data = home / "data"
    (data / "environments").mkdir(parents=True)
    (data / "models").symlink_to(prepared_data() / "models")
    for name in ("espeak",):
        (data / "environments" / name).symlink_to(prepared_data() / "environments" / name)
    for stage, name in ENGINES.items():
        hire(home, stage, name)
    return House(home, {**SETTINGS, **(settings or {})}, **how)  # type: ignore[arg-type]  # a House's own fields


def hire(home: Path, stage: Stage, name: str) -> None:
    """One more fake of the user's own, as if it had been built."""
    folder = home / "data" / "engines" / name
    folder.mkdir(parents=True)
    for file in ("serve.py", "outward.py", "requirements.lock"):
        shutil.copy(FOLDER / file, folder / file)
    manifest = (FOLDER / "engine.toml").read_text()
    changed = {
        'name = "engine"': f'name = "{name}"',
        'stage = "tts"': f'stage = "{stage}"',
        'protocol = "wyoming"': f'protocol = "{"openai" if stage == "llm" else "wyoming"}"',
    }
    for before, after in changed.items():
        manifest = manifest.replace(before, after)
    told = {"mood": str(mood_of(home, name)), "words": WORDS, "says": ANSWER}
    manifest += "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items())
    (folder / "engine.toml").write_text(manifest)
    environment = home / "data" / "environments" / name
    packages = environment / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    (packages / "ondam_engines").mkdir(parents=True)
    (packages / "ondam_engines" / name).symlink_to(folder)
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(sys.executable)
    Stamp.wanted(read_engine(folder), "cpu").write(environment)


def mood_of(home: Path, name: str) -> Path:
    """Where that engine looks for what to do wrong."""
    return home / f"mood-{name}.json"


def set_mood(house: House, stage: Stage, **what: object) -> None:
    """From its next request on; with nothing it behaves again."""
    path = mood_of(house.home, ENGINES[stage])
    if not what:
        path.unlink(missing_ok=True)
        return
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(what))
    beside.replace(path)


@contextmanager
def mood(house: House, stage: Stage, **what: object) -> Iterator[None]:
    """For as long as this lasts."""
    set_mood(house, stage, **what)
    try:
        yield
    finally:
        set_mood(house, stage)
