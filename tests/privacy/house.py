"""A daemon whose engines repeat everything that they are told, and fail with it in their mouths."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ondam.supervisor.manifest import read_engine
from ondam.supervisor.stamp import Stamp
from tests.scenarios.house import House, prepared_data

HERE = Path(__file__).parent
ENGINE = HERE.parent / "fakes" / "engine"

SETTINGS = {
    "language": "ko",
    "stt.engine": "gossip_stt",
    "llm.engine": "gossip_llm",
    "tts.engine": "gossip_tts",
    "tts.spare": "",
    "stt.model": "/dev/null",
    "llm.model": "/dev/null",
    "supervisor.backoff_first_s": "0.05",
    "supervisor.backoff_last_s": "0.1",
    "supervisor.restart_limit": "1000",
    "audit.enabled": "true",
}


def gossiping(home: Path, heard: str, says: str, settings: Mapping[str, str], quiet_turns: int) -> House:
    """Not started yet. Everything that it writes is below ``home``, temporary files and sockets too."""
    data = home / "data"
    (data / "environments").mkdir(parents=True)
    (data / "models").symlink_to(prepared_data() / "models")
    for stage in ("stt", "llm", "tts"):
        _hire(data, stage, quiet_turns)
        # Not among the options: those stand with the conditions of every turn.
        words = data / "engines" / f"gossip_{stage}" / "words.json"
        words.write_text(json.dumps({"heard": heard, "says": says}))
    own = {"TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "HOME": "user", "XDG_CACHE_HOME": "cache"}
    for name in own.values():
        (home / name).mkdir()
    environ = {**{key: str(home / name) for key, name in own.items()}, "PYTHONDEVMODE": ""}
    return House(home, {**SETTINGS, **settings}, environ=environ)


def _hire(data: Path, stage: str, quiet_turns: int) -> None:
    name = f"gossip_{stage}"
    folder = data / "engines" / name
    folder.mkdir(parents=True)
    shutil.copy(HERE / "gossip.py", folder / "serve.py")
    shutil.copy(ENGINE / "requirements.lock", folder / "requirements.lock")
    manifest = (ENGINE / "engine.toml").read_text().partition("[options]")[0]
    for before, after in {
        'name = "engine"': f'name = "{name}"',
        'stage = "tts"': f'stage = "{stage}"',
        'protocol = "wyoming"': f'protocol = "{"openai" if stage == "llm" else "wyoming"}"',
    }.items():
        manifest = manifest.replace(before, after)
    manifest += f'[options]\nstage = "{stage}"\nquiet_turns = {quiet_turns}\n'
    (folder / "engine.toml").write_text(manifest)
    environment = data / "environments" / name
    packages = environment / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    (packages / "ondam_engines").mkdir(parents=True)
    (packages / "ondam_engines" / name).symlink_to(folder)
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(sys.executable)
    Stamp.wanted(read_engine(folder), "cpu").write(environment)
