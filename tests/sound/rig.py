"""A virtual sound card: a private PulseAudio, or PipeWire in its place, with a microphone to speak into.

One null sink, "card", is the room: its left channel is what the speaker plays, its right channel what is said
into the microphone. A recording of its monitor therefore shows both on one clock, to the sample.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from ondam.types import Audio, Samples

RATE_HZ = 48_000

SOON = ("nice", "-n", "-10")
"""Before each of the rig's programs: on a busy machine the rig itself would stutter. Without the right to it,
they run all the same."""

LEFT, RIGHT = "front-left", "front-right"
PROGRAMS = {
    "pulseaudio": ("pulseaudio", "pactl", "paplay", "parec"),
    "pipewire": ("pipewire", "pipewire-pulse", "wireplumber", "dbus-run-session", "pactl", "paplay", "parec"),
}
PACKAGES = (
    "pulseaudio pulseaudio-utils libasound2-plugins libportaudio2 pipewire pipewire-pulse wireplumber dbus"
)

# norewinds: else what was just written is taken back and rendered again, and the rig stutters by itself.
SINKS = {
    "card": f"module-null-sink sink_name=card norewinds=1 rate={RATE_HZ} channels=2 "
    f"channel_map={LEFT},{RIGHT}",
    "speaker": "module-remap-sink sink_name=speaker master=card channels=1 channel_map=mono "
    f"master_channel_map={LEFT} remix=no",
    "micfeed": "module-remap-sink sink_name=micfeed master=card channels=1 channel_map=mono "
    f"master_channel_map={RIGHT} remix=no",
    "microphone": "module-remap-source source_name=microphone master=card.monitor channels=1 "
    f"channel_map=mono master_channel_map={RIGHT} remix=no",
}


class Recording:
    """What the room heard: ``speaker`` and ``microphone``, on one clock."""

    def __init__(self) -> None:
        self.frames: npt.NDArray[np.int16] = np.zeros((0, 2), np.int16)

    @property
    def speaker(self) -> Samples:
        return self.frames[:, 0]

    @property
    def microphone(self) -> Samples:
        return self.frames[:, 1]


class SoundRig:
    """Start with ``start``; ``stop`` leaves nothing behind. ``environment`` is what its users need."""

    def __init__(self, folder: Path, server: Literal["pulseaudio", "pipewire"] = "pulseaudio") -> None:
        self.server = server
        self._folder = folder
        self._socket = folder / "native"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._players: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "PULSE_SERVER": f"unix:{self._socket}",
            "XDG_RUNTIME_DIR": str(folder),
            "HOME": str(folder),
            "PULSE_COOKIE": str(folder / "cookie"),
        }
        missing = [name for name in PROGRAMS[server] if not shutil.which(name)]
        if missing:
            raise RuntimeError(f"{', '.join(missing)} not found. Type: sudo apt install {PACKAGES}")

    def start(self) -> None:
        """Returns when the server answers and all devices are there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        if self.server == "pulseaudio":
            self._start_pulseaudio()
        else:
            self._start_pipewire()
        for device in SINKS:
            self.add(device)
        self.control("set-default-sink", "speaker")
        self.control("set-default-source", "microphone")

    def stop(self) -> None:
        for process in [*self._players, *reversed(self._processes)]:
            _end(process)
        self._players.clear()
        self._processes.clear()

    @property
    def running(self) -> bool:
        """The server was started, and not killed since."""
        return bool(self._processes)

    def kill(self) -> None:
        """The server dies as in a crash."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        self._socket.unlink(missing_ok=True)

    def hang(self) -> None:
        """The server stops answering, its sockets stay open."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._processes:
            os.killpg(process.pid, signal.SIGCONT)

    def add(self, device: str) -> None:
        """Plug in "microphone", "speaker", ...: under a new index each time."""
        self.control("load-module", *SINKS[device].split())
        kind = "sources" if device == "microphone" else "sinks"
        _until(lambda: device in self.devices(kind), f"{device} to appear")

    def remove(self, device: str) -> None:
        """Pull it out."""
        for line in self.control("list", "short", "modules").splitlines():
            number, _, arguments = line.partition("\t")
            if f"_name={device} " in arguments + " ":
                self.control("unload-module", number)

    def devices(self, kind: str) -> dict[str, int]:
        """Names and indices of the "sinks" or "sources"."""
        rows = [line.split("\t") for line in self.control("list", "short", kind).splitlines()]
        return {row[1]: int(row[0]) for row in rows}

    def control(self, *arguments: str) -> str:
        return subprocess.run(
            ["pactl", *arguments], env=self._env(), check=True, capture_output=True, text=True, timeout=10
        ).stdout

    def say(self, audio: Audio) -> subprocess.Popen[bytes]:
        """Speak into the microphone. Returns at once; ``wait`` for the process to have it all said."""
        player = subprocess.Popen(
            _command("paplay", "-d micfeed --latency-msec=40 --channels=1", audio.rate_hz),
            stdin=subprocess.PIPE,
            env=self._env(),
        )
        self._players.append(player)
        assert player.stdin
        feeder = threading.Thread(target=_feed, args=(player, audio.samples.tobytes()), daemon=True)
        feeder.start()
        return player

    @contextlib.contextmanager
    def record(self) -> Iterator[Recording]:
        """Record the room; the recording is complete when the block has ended."""
        recorder = subprocess.Popen(
            _command("parec", f"-d card.monitor --latency-msec=20 --channel-map={LEFT},{RIGHT}", RATE_HZ),
            stdout=subprocess.PIPE,
            env=self._env(),
        )
        assert recorder.stdout
        pipe = recorder.stdout.fileno()
        data = bytearray()
        begun = threading.Event()

        def read() -> None:
            while piece := os.read(pipe, 1 << 16):
                data.extend(piece)
                begun.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        begun.wait(5)
        recording = Recording()
        try:
            yield recording
        finally:
            time.sleep(0.2)  # what was just played reaches the recorder a little later
            recorder.terminate()
            recorder.wait()
            reader.join()
            recorder.stdout.close()
            whole = len(data) // 4 * 4
            recording.frames = np.frombuffer(bytes(data[:whole]), np.int16).reshape(-1, 2)

    def _env(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _spawn(self, *command: str, **environment: str) -> None:
        with (self._folder / f"{command[0]}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [*SOON, *command],
                    env=self._env() | environment,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )

    def _start_pulseaudio(self) -> None:
        script = self._folder / "pa.pa"
        script.write_text(f"load-module module-native-protocol-unix auth-anonymous=1 socket={self._socket}\n")
        self._spawn(
            *f"pulseaudio -n -F {script} --daemonize=no --exit-idle-time=-1 --use-pid-file=no".split(),
            "--disable-shm=yes",
        )
        _until(self._answers, "PulseAudio to answer")

    def _start_pipewire(self) -> None:
        # One session bus for the three; the shell goes on to nothing but waiting for them.
        script = "pipewire & sleep 0.3; wireplumber & pipewire-pulse & wait"
        self._spawn("dbus-run-session", "--", "sh", "-c", script, PIPEWIRE_RUNTIME_DIR=str(self._folder))
        link = self._folder / "pulse" / "native"
        _until(link.exists, "PipeWire's PulseAudio socket to appear")
        if not self._socket.is_symlink():
            self._socket.symlink_to(link)
        _until(self._answers, "PipeWire to answer")

    def _answers(self) -> bool:
        asked = subprocess.run(["pactl", "info"], env=self._env(), capture_output=True, check=False)
        return asked.returncode == 0


def onsets(
    samples: Samples, *, threshold: int = 2000, apart_s: float = 0.1, rate_hz: int = RATE_HZ
) -> list[float]:
    """Seconds at which something louder than ``threshold`` begins, after ``apart_s`` of less."""
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > threshold)
    begins = loud[np.insert(np.diff(loud) > apart_s * rate_hz, 0, True)] if len(loud) else loud
    return [float(begin / rate_hz) for begin in begins]


def _command(program: str, options: str, rate_hz: int) -> list[str]:
    return [*SOON, program, "--raw", "--format=s16le", f"--rate={rate_hz}", *options.split()]


def _feed(player: subprocess.Popen[bytes], data: bytes) -> None:
    assert player.stdin
    # The server may be killed under the player in a test: then nothing is left to feed.
    with contextlib.suppress(BrokenPipeError):
        player.stdin.write(data)
    with contextlib.suppress(BrokenPipeError):
        player.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        # A stopped server must go on to be able to end. Players have no group of their own.
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until(true: object, what: str, timeout_s: float = 10.0) -> None:
    assert callable(true)
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}")
        time.sleep(0.02)
