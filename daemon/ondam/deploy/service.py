"""Installs, removes and asks the service: a user's, or the system's. Files first, then systemd is told.

Where no systemd runs (a container, another init) the files are written all the same, and it is said what is
left to type.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ondam.carried import carried
from ondam.deploy.bundle_versions import of_home
from ondam.deploy.unit import NAME, SYSUSERS, Installed, Scope, shipped, unit
from ondam.errors import ServiceError
from ondam.messages import Phrase, typed
from ondam.owner import hand_over
from ondam.places import GROUP, MACHINE_STATE

PASSED_ON = (
    "ONDAM_HOME",
    "ONDAM_LANGUAGE",
    "ONDAM_SYSTEM_CONFIG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
"""Of the environment in which a user's service is installed: the service is to find the same folders."""

HIDDEN = ("/home", "/root", "/run/user")
"""What ``ProtectHome=yes`` hides from the system's daemon."""

ASKED = (
    *(
        "LoadState",
        "ActiveState",
        "SubState",
        "UnitFileState",
        "StatusText",
        "MainPID",
        "NRestarts",
        "Result",
    ),
    "ActiveEnterTimestamp",
)

ANSWERS_S = 30.0
"""systemd answers at once; a start is told to it without waiting for its end."""

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWERS_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(command), 127, "", str(error))


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, and what is left to do."""

    unit: Path
    started: bool
    told: tuple[Phrase, ...] = ()
    """What a person should know, with what to type."""


@dataclass(frozen=True, slots=True)
class Service:
    """The service of one scope. ``root`` and ``run`` are others in tests."""

    scope: Scope
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")
    run: Run = _run

    @property
    def path(self) -> Path:
        """Where its unit is."""
        if self.scope == "system":
            return self.root / "etc/systemd/system" / NAME
        return self._config / "systemd/user" / NAME

    @property
    def _config(self) -> Path:
        folder = of_home(self.environ.get("XDG_CONFIG_HOME") or "~/.config")
        if folder is None:
            raise ServiceError("service_no_home")
        return folder

    @property
    def sysusers(self) -> Path:
        """Where its user and its groups are declared."""
        return self.root / "etc/sysusers.d/ondam.conf"

    @property
    def running(self) -> bool:
        """Whether there is a systemd to be told (sd_booted(3))."""
        return (self.root / "run/systemd/system").is_dir()

    def text(self, program: Path) -> str:
        """The unit as it would be written. Raises ServiceError."""
        if self.scope == "system":
            return unit("system", program, {})
        passed = {name: self.environ[name] for name in PASSED_ON if self.environ.get(name)}
        return unit("user", program, passed)

    def installed(self) -> Installed | None:
        """What is there; None: nothing."""
        try:
            return Installed.read(self.path.read_text("utf-8", "replace"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ServiceError("service_unreadable", path=self.path, reason=error.strerror) from error

    def install(self, program: Path, *, start: bool, linger: bool = False) -> Done:
        """Write the unit and let systemd know it. Raises ServiceError; a unit of somebody else's is not
        overwritten."""
        written = self.text(program)
        there = self.installed()
        if there is not None and not there.ours:
            raise ServiceError("service_not_ours", path=self.path)
        told: list[Phrase] = []
        if self.scope == "system":
            self._must_be_root("install")
            self._must_be_seen(program)
            self._write(self.sysusers, shipped(SYSUSERS))
            with _writing(self.root / "etc/ondam") as folder:
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            made = self.run(["systemd-sysusers", str(self.sysusers)])
            if made.returncode:
                told.append(Phrase("service_no_users", reason=_reason(made), path=self.sysusers))
            else:
                with _writing(self.root / str(MACHINE_STATE.relative_to("/"))) as folder:
                    self._state_folder(folder)
            told.append(Phrase("service_groups", user=self.environ.get("SUDO_USER") or "NAME"))
        self._write(self.path, written)
        if not self.running:
            return Done(self.path, False, (*told, Phrase("service_no_systemd", command=self._shown("start"))))
        self._systemctl("daemon-reload")
        self._systemctl("enable", NAME)
        if self.scope == "user":
            told += self._lingering(linger)
        if start:
            # Not waited for: models may take minutes to load, and `status` shows how far they are.
            self._systemctl("--no-block", "restart", NAME)
        return Done(self.path, start, tuple(told))

    def uninstall(self) -> Done:
        """Stop it and take its files away; what it stored stays. Raises ServiceError."""
        there = self.installed()
        if there is None:
            raise ServiceError("service_not_installed", path=self.path, command=self.command("install"))
        if not there.ours:
            raise ServiceError("service_not_ours", path=self.path)
        if self.scope == "system":
            self._must_be_root("uninstall")
        if self.running:
            self._systemctl("disable", "--now", NAME)
        for path in (self.path, self.sysusers) if self.scope == "system" else (self.path,):
            with _writing(path):
                path.unlink(missing_ok=True)
        if self.running:
            self._systemctl("daemon-reload")
        return Done(self.path, False)

    def state(self) -> dict[str, str]:
        """What systemd says of it, by its own names (``ASKED``); empty where there is no systemd."""
        if not self.running:
            return {}
        shown = self.run([*self._call, "show", NAME, *(f"--property={name}" for name in ASKED)])
        if shown.returncode:
            raise ServiceError("service_manager_failed", command=self._shown("show"), reason=_reason(shown))
        pairs = (line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
        return {name: value for name, value in pairs if name in ASKED}

    def lingers(self) -> bool:
        """Whether this user's services go on without a session (loginctl(1))."""
        return (self.root / "var/lib/systemd/linger" / user_name()).exists()

    @property
    def _call(self) -> list[str]:
        return ["systemctl", "--user"] if self.scope == "user" else ["systemctl"]

    @property
    def journal(self) -> str:
        """What shows what it said last."""
        return f"journalctl {'--user ' if self.scope == 'user' else ''}-u ondam -n 20"

    def _systemctl(self, *words: str) -> None:
        done = self.run([*self._call, *words])
        if done.returncode:
            command = " ".join([*self._call, *words])
            raise ServiceError("service_manager_failed", command=command, reason=_reason(done))

    def _shown(self, verb: str) -> str:
        return " ".join([*self._call, verb, NAME])

    def command(self, verb: str) -> str:
        """What is typed to do ``verb`` with it."""
        own = f"ondam service {verb}"
        return own if self.scope == "user" else typed(f"sudo {own} --system")

    def _lingering(self, wanted: bool) -> list[Phrase]:
        if self.lingers():
            return []
        if wanted:
            done = self.run(["loginctl", "enable-linger", user_name()])
            if done.returncode:
                raise ServiceError("service_manager_failed", command="loginctl", reason=_reason(done))
            return []
        return [Phrase("service_ends_at_logout", user=user_name())]

    def _must_be_root(self, verb: str) -> None:
        if os.geteuid() != 0:
            raise ServiceError("service_needs_root", command=self.command(verb))

    def _must_be_seen(self, program: Path) -> None:
        """The system's daemon sees no home folders: not the program, and not the Python behind it either."""
        for path in (program, Path(sys.executable), Path(sys.base_prefix)):
            for place in {path.absolute(), path.resolve()}:
                if any(place.is_relative_to(hidden) for hidden in HIDDEN):
                    raise ServiceError("service_program_at_home", path=place)

    def _state_folder(self, folder: Path) -> None:
        """Before the first start, so that models and engines can be brought as its owner."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(LookupError):  # systemd makes it all the same when it starts the service
            shutil.chown(folder, GROUP, GROUP)
        # Whatever root typed before the user was there: systemd looks at the folder's own owner alone.
        hand_over(folder)

    def _write(self, path: Path, text: str) -> None:
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".ondam-")
            beside = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                beside.chmod(0o644)
                beside.replace(path)
            except OSError:
                with contextlib.suppress(OSError):
                    beside.unlink(missing_ok=True)
                raise


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[Path]:
    """``path`` is written, made or removed. Raises ServiceError where it cannot be."""
    try:
        yield path
    except OSError as error:
        raise ServiceError("service_unwritable", path=path, reason=error.strerror or error) from error


def program() -> Path:
    """What a unit starts: this Ondam, or where a bundle installed it whatever version is current then."""
    folder = carried()
    if folder is not None and (launcher := folder.parent.parent / "bin" / "ondam").exists():
        return launcher
    beside = Path(sys.prefix) / "bin" / "ondam"
    if beside.exists():
        return beside.absolute()
    found = shutil.which("ondam")
    if found is None:
        raise ServiceError("service_no_program", path=beside)
    return Path(found).absolute()


def user_name() -> str:
    """Who this is, by the user database; without an entry by what the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return getpass.getuser()


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"
