"""A machine that boots: systemd as its first process, a disk and a network of its own, nothing of ours there.

Its disk is this machine's, seen through an overlay, so it is Debian or Ubuntu as they are here; what is
written goes into a folder and is there again after a reboot. Its network has a loopback and nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

INIT = "/lib/systemd/systemd"

BOOT = """
set -eu
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=/,upperdir="$1/written",workdir="$1/work" "$1/disk"
mount --bind -o ro "$2" "$1/disk/media/stick"
cd "$1/disk"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for folder in dev run tmp; do mount -t tmpfs none $folder; done
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/shm dev/pts
mount -t tmpfs none dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . mnt
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'cd /; umount -l /mnt; exec "$@"' sh """
"""The kernel is this machine's, so what belongs to it may be looked at and not be changed."""

APART = 'mkdir -p "$1"; echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
"""In a control group of its own, whose root is what systemd takes for the root of all."""

BOOTED_WITHIN_S = 30.0


def possible() -> str:
    """Why none can be had here; empty: it can."""
    if os.geteuid() != 0:
        return "only root can boot a box"
    if not Path(INIT).exists():
        return "no systemd is installed"
    try:
        _cgroup()
    except LookupError as error:
        return str(error)
    return ""


def _cgroup() -> Path:
    """Where the second version's tree of control groups is."""
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        words = line.split()
        if words[words.index("-") + 1] == "cgroup2":
            return Path(words[4])
    raise LookupError("there are no control groups of the second version")


@dataclass
class Box:
    """``folder``: where its disk is kept, ``stick``: what is plugged in, read-only, as /media/stick."""

    folder: Path
    stick: Path
    process: subprocess.Popen[bytes] | None = None

    def without(self, hidden: Iterable[Path]) -> None:
        """Before the first boot: these folders of this machine are empty there."""
        for path in (*hidden, Path("/media/stick")):
            place = self.folder / "written" / path.relative_to("/")
            place.mkdir(parents=True, exist_ok=True)
            os.setxattr(place, "trusted.overlay.opaque", b"y")
        for name in ("work", "disk"):
            (self.folder / name).mkdir(exist_ok=True)

    def boot(self) -> None:
        """Returns when it has started everything that it starts by itself."""
        own = ["unshare", "-m", "-p", "-f", "-i", "-u", "-n", "-C", "--kill-child", "sh", "-c"]
        init = f"{INIT} --system --log-target=journal --show-status=0 --unit=multi-user.target"
        with (self.folder / "console.log").open("ab") as console:
            self.process = subprocess.Popen(
                ["sh", "-c", APART, "sh", str(self._group), *own, BOOT + init, "sh", self.folder, self.stick],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )
        self.until(lambda: self._first() is not None, BOOTED_WITHIN_S)
        self.until(lambda: self.state in {"running", "degraded"}, BOOTED_WITHIN_S)

    @property
    def state(self) -> str:
        """Of the whole, by systemd's word."""
        return self.run("systemctl", "is-system-running").stdout.strip()

    def shut_down(self) -> float:
        """As its power button does; how long it took, s."""
        began = time.monotonic()
        first = self._first()
        assert self.process is not None and first is not None
        os.kill(first, signal.SIGRTMIN + 4)  # systemd(1): power off
        self.process.wait(60)
        self.process = None
        return time.monotonic() - began

    def pull_the_plug(self) -> None:
        """No matter what it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None
        for folder, _, _ in os.walk(self._group, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()

    def run(self, *command: object, user: str = "", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """In there, as root or as a user who is logged in."""
        first = self._first()
        assert first is not None, self.console
        inside = ["nsenter", "-t", str(first), "-m", "-p", "-i", "-u", "-n", "-C", "-r", "-w"]
        settings = ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8", "HOME=/root"]
        if user:
            inside += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
            uid = self.run("id", "-u", user).stdout.strip()
            settings[-1] = f"HOME=/home/{user}"
            settings += [f"XDG_RUNTIME_DIR=/run/user/{uid}", f"USER={user}"]
            settings.append(f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{uid}/bus")
        return subprocess.run(
            [*inside, "env", "-i", *settings, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def until(self, there: Callable[[], object], within_s: float) -> float:
        """Wait for it; how long it took, s."""
        began = time.monotonic()
        while not there():
            assert self.process is None or self.process.poll() is None, self.console
            assert time.monotonic() - began < within_s, self.console
            time.sleep(0.1)
        return time.monotonic() - began

    @property
    def console(self) -> str:
        """The last that it printed."""
        return (self.folder / "console.log").read_text("utf-8", "replace")[-4000:]

    @property
    def _group(self) -> Path:
        return _cgroup() / f"ondam-box-{os.getpid()}"

    def _first(self) -> int | None:
        """The first process of the box, once it is systemd."""
        assert self.process is not None
        try:
            for child in psutil.Process(self.process.pid).children():
                if child.name() == "systemd":
                    return child.pid
        except psutil.NoSuchProcess:
            pass
        return None
