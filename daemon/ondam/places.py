"""Where Ondam keeps things. ``ONDAM_HOME`` moves everything at once: config, state, data, sockets."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ondam.errors import ConfigError

LONGEST_SOCKET_PATH = 107
"""Bytes that fit ``sockaddr_un.sun_path`` on Linux, less the closing zero (unix(7))."""

LONGEST_SOCKET_NAME = len("/engine-" + "x" * 32 + "-b.sock")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one instance. Two instances never share ``state`` or ``runtime``."""

    config: Path
    data: Path
    state: Path
    runtime: Path

    @property
    def config_file(self) -> Path:
        """The user's ``config.toml``."""
        return self.config / "config.toml"

    @property
    def models(self) -> Path:
        """The model store: ``<id>/<files>``."""
        return self.data / "models"

    @property
    def environments(self) -> Path:
        """One folder per engine: its virtual environment."""
        return self.data / "environments"

    def engine_cache(self, engine: str) -> Path:
        """What an engine computes once for this machine and keeps (``ondam engines warm``); it makes it
        itself."""
        return self.data / "caches" / engine

    @property
    def user_engines(self) -> Path:
        """Engine folders that the user adds; found beside those in the package."""
        return self.data / "engines"

    @property
    def logs(self) -> Path:
        """Rotated logs, one per engine and one for the daemon."""
        return self.state / "logs"

    @property
    def journal(self) -> Path:
        """The SQLite file of turns."""
        return self.state / "journal.sqlite"

    @property
    def lock(self) -> Path:
        """Held by the running daemon; whoever holds it owns the sockets."""
        return self.state / "daemon.lock"

    @property
    def control_socket(self) -> Path:
        """Where the daemon answers."""
        return self.runtime / "control.sock"

    def engine_socket(self, engine: str) -> Path:
        """Where an engine answers."""
        return self.runtime / f"engine-{engine}.sock"

    def engine_report(self, engine: str) -> Path:
        """What an engine says it got, beside its socket."""
        return self.runtime / f"engine-{engine}.report.json"


def places(environ: Mapping[str, str] = os.environ) -> Places:
    """The folders for this user, or below ``ONDAM_HOME``.

    Raises ConfigError when ``ONDAM_HOME`` cannot be a folder, or the sockets' folder is too deep to bind a
    socket in.
    """
    home = environ.get("ONDAM_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        if not there.is_dir():
            raise ConfigError("home_no_folder", path=there, home=home)
        config, data, state = root / "config", root / "data", root / "state"
    else:
        dirs = platformdirs.PlatformDirs("ondam", appauthor=False)
        config, data, state = dirs.user_config_path, dirs.user_data_path, dirs.user_state_path
    runtime = _runtime_root(environ) / f"ondam-{hashlib.sha256(os.fsencode(state)).hexdigest()[:12]}"
    if len(os.fsencode(runtime)) + LONGEST_SOCKET_NAME > LONGEST_SOCKET_PATH:
        raise ConfigError("socket_path_too_long", path=runtime, limit=LONGEST_SOCKET_PATH)
    return Places(config, data, state, runtime)


def private_folder(path: Path, gid: int | None = None) -> None:
    """Make ``path`` a folder for sockets: 0700, or 0750 and the group ``gid``. Raises ConfigError.

    It must be ours, and no link. The folder above it is made 0700 where it is missing; one that is there must
    be ours or the system's.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    ours = os.geteuid()
    for folder, owners in ((path.parent, {ours, 0}), (path, {ours})):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
            raise ConfigError("folder_not_ours", path=folder)
    if gid is not None:
        os.chown(path, -1, gid)
    path.chmod(0o700 if gid is None else 0o750)


def _runtime_root(environ: Mapping[str, str]) -> Path:
    """XDG_RUNTIME_DIR, else a private folder in the system's temporary place (cron, containers, ssh)."""
    given = environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir():
        return Path(given)
    return Path(tempfile.gettempdir()) / f"ondam-{os.getuid()}"
