"""Where Ondam keeps things. ``ONDAM_HOME`` moves everything at once: config, state, data, sockets."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ondam.at_home import at_home
from ondam.errors import ConfigError

BERTHS = ("", "-b")
"""What the names of an engine's files end in: two of one engine may run side by side while one takes over."""

LONGEST_SOCKET_PATH = 107
"""Bytes that fit ``sockaddr_un.sun_path`` on Linux, less the closing zero (unix(7))."""

LONGEST_SOCKET_NAME = len("/engine-" + "x" * 32 + "-b.sock")

MACHINE_CONFIG = Path("/etc/ondam/config.toml")
"""Below every user's own; of the system's daemon the only one."""

MACHINE_STATE = Path("/var/lib/ondam")
MACHINE_RUNTIME = Path("/run/ondam")
MACHINE_UNIT = Path("/etc/systemd/system/ondam.service")
GROUP = "ondam"
"""Whose members may use the system's daemon; those of ``ondam-admin`` may administer it."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one instance. Two instances never share ``state`` or ``runtime``."""

    config: Path
    data: Path
    state: Path
    runtime: Path
    group: str | None = field(default=None, kw_only=True)
    """Whom the control socket is opened to, as the system's daemon does; None: to its user alone."""

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
    def texts(self) -> Path:
        """What was said and answered, where that is kept (``journal.keep_text``)."""
        return self.state / "kept" / "texts.sqlite"

    @property
    def sounds(self) -> Path:
        """Utterances as sound, where they are kept (``journal.keep_audio``)."""
        return self.state / "kept" / "sounds"

    @property
    def audit(self) -> Path:
        """A line per turn for auditors (``audit.enabled``), where no other place is named."""
        return self.state / "audit.jsonl"

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

    def engine_answers(self, engine: str) -> Path:
        """The socket of whichever of two berths ``engine`` answers at now; after a switch it is the other."""
        found = [self.engine_socket(engine + berth) for berth in BERTHS]
        return next((socket for socket in found if socket.exists()), found[0])

    def engine_report(self, engine: str) -> Path:
        """What an engine says it got, beside its socket."""
        return self.runtime / f"engine-{engine}.report.json"


def places(environ: Mapping[str, str] = os.environ) -> Places:
    """The folders for this user, or below ``ONDAM_HOME``; with ``ONDAM_SYSTEM=1`` those of the system's
    daemon, whose socket is the group's (``ONDAM_GROUP``, by default "ondam").

    Raises ConfigError when ``ONDAM_HOME`` cannot be a folder, when nobody says where this user's folders are,
    or the sockets' folder is too deep to bind a socket in.
    """
    home = environ.get("ONDAM_HOME")
    system = environ.get("ONDAM_SYSTEM") == "1"
    group = (environ.get("ONDAM_GROUP") or GROUP) if system else None
    if home:
        try:
            root = at_home(home).absolute()
            there = next(folder for folder in (root, *root.parents) if folder.exists())
            if not there.is_dir():
                raise ConfigError("home_no_folder", path=there, home=home)
        except OSError as error:  # somebody else's, or a name that is too long
            raise ConfigError("home_closed", home=home, reason=error.strerror or error) from error
        config, data, state = root / "config", root / "data", root / "state"
    elif system:
        state = MACHINE_STATE
        return Places(MACHINE_CONFIG.parent, state / "data", state / "state", MACHINE_RUNTIME, group=group)
    else:
        # Not for the tray, whose own environment knows the control client and little else.
        import platformdirs

        dirs = platformdirs.PlatformDirs("ondam", appauthor=False)
        try:
            config, data, state = dirs.user_config_path, dirs.user_data_path, dirs.user_state_path
        except RuntimeError as error:  # no HOME, and the user database does not know who this is
            raise ConfigError("home_unknown") from error
        if not all(folder.is_absolute() for folder in (config, data, state)):
            raise ConfigError("home_unknown")  # likewise, in older platformdirs: "~" stayed "~"
    runtime = _runtime_root(environ) / f"ondam-{hashlib.sha256(os.fsencode(state)).hexdigest()[:12]}"
    if len(os.fsencode(runtime)) + LONGEST_SOCKET_NAME > LONGEST_SOCKET_PATH:
        raise ConfigError("socket_path_too_long", path=runtime, limit=LONGEST_SOCKET_PATH)
    return Places(config, data, state, runtime, group=group)


def answering(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a daemon answers whoever asks: the user's own, or else the system's where one runs.

    Raises as ``places`` does.
    """
    own = places(environ).control_socket
    if environ.get("ONDAM_HOME") or own.exists():
        return own
    # Its folder is seen by everybody; who may not enter it is told that, and what to type.
    return MACHINE_RUNTIME / own.name if MACHINE_RUNTIME.is_dir() else own


def starting(socket: Path, environ: Mapping[str, str] = os.environ) -> str:
    """What is typed to start the daemon that would answer at ``socket``.

    Where the machine has a service that is stopped, nothing is left at its own place: that one is meant.
    """
    systems = socket.parent == MACHINE_RUNTIME or (MACHINE_UNIT.exists() and not environ.get("ONDAM_HOME"))
    return "sudo systemctl start ondam" if systems else "ondam up"


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
