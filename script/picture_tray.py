"""Takes pictures of the tray: Xfce's panel on a display without a screen, a daemon with the embedded engines.

    script/picture_tray.py          docs/images/tray-*.png, for the README and docs/tray.md
    script/picture_tray.py FOLDER   the same pictures elsewhere, and the menu in each state

Needs what the tests need (script/test installs it), ImageMagick, the prepared engines, and a Korean font
(fonts-noto-cjk).
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.scenarios.house import House  # noqa: E402
from tests.sound.rig import SINKS, SoundRig  # noqa: E402
from tests.tray.conftest import Tray, murmur, session  # noqa: E402
from tests.tray.desktop import Desktop, until  # noqa: E402
from tests.tray.menubus import Bus, Icon  # noqa: E402

from ondam.deploy.tray import SYSTEM_PYTHON, install  # noqa: E402
from ondam.measure.clips import clips  # noqa: E402
from ondam.models.registry import Registry  # noqa: E402
from ondam.places import places  # noqa: E402

PANEL_PX = 30
"""Height of the panel of ``tests.tray.desktop``, with its edge."""

ORDINARY = {"microphone": ("source", "Built-in Microphone"), "speaker": ("sink", "Speakers")}
"""What the rig's devices are called in the pictures."""


def named() -> None:
    """The rig's devices, from now on."""
    for device, (kind, name) in ORDINARY.items():
        SINKS[device] += f""" {kind}_properties="device.description='{name}'\""""


def shot(desktop: Desktop, where: Path) -> None:
    """The menu and the end of the panel above it, in few colours."""
    environ = desktop.environ()
    whole = where.with_suffix(".whole.png")
    subprocess.run(["import", "-window", "root", str(whole)], env=environ, check=True, timeout=30)
    below = ["-crop", f"+0+{PANEL_PX}", "-trim", "-format", "%X %Y %w %h", "info:"]
    found = subprocess.run(
        ["convert", str(whole), *below], check=True, timeout=30, capture_output=True, text=True
    ).stdout
    left, top, wide, high = (int(number) for number in found.split())
    trim = ["-crop", f"{wide}x{top + high}+{left}+0", "+repage"]
    subprocess.run(
        ["convert", str(whole), *trim, "-colors", "64", "-define", "png:compression-level=9", str(where)],
        check=True,
        timeout=30,
    )
    whole.unlink()


def opened(desktop: Desktop, where: Path) -> None:
    """The open menu, without the panel's tooltip over it."""
    desktop.click_icon()
    desktop.move_into_menu(-800, 700)  # and out of it: no line is lit
    time.sleep(1)
    shot(desktop, where)
    desktop.press("Escape")
    time.sleep(0.3)


async def speak(house: House, turns: int) -> None:
    async with house.client() as client:
        for number in range(turns):
            await client.wav_turn(clips("en")[number % 8].wav, "en", reset_history=number % 4 == 0)


def pictures(
    house: House, desktop: Desktop, rig: SoundRig, folder: Path, language: str, states: bool
) -> None:
    tray = Tray(desktop, house.home, language)
    tray.start()
    try:
        with desktop.bus() as bus:
            icon = tray.icon(bus)
            until(lambda: icon.picture == "listening", "the daemon to be reached", 60)
            figures = "): usually" if language == "en" else "회: 보통"
            until(lambda: any(figures in label for label in icon.labels()), "today's figures", 60)
            time.sleep(2)  # and devices
            opened(desktop, folder / f"tray-{language}.png")
            if states:
                other_states(house, desktop, rig, bus, icon, folder, language)
    finally:
        tray.end()


def other_states(
    house: House, desktop: Desktop, rig: SoundRig, bus: Bus, icon: Icon, folder: Path, language: str
) -> None:
    async def mode(wanted: str) -> None:
        async with house.client() as client:
            await client.set_mode(wanted)  # type: ignore[arg-type]  # one of the modes

    asyncio.run(mode("muted"))
    until(lambda: icon.picture == "muted", "mute")
    opened(desktop, folder / f"tray-muted-{language}.png")
    asyncio.run(mode("open"))
    until(lambda: icon.picture == "listening", "no mute")
    rig.remove("microphone")
    until(lambda: icon.picture == "fault", "a fault")
    opened(desktop, folder / f"tray-fault-{language}.png")
    rig.add("microphone")
    until(lambda: icon.picture == "listening", "the microphone to be back", 30)


def main(folder: Path, states: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = install(places(), SYSTEM_PYTHON, Registry.from_pip().uv_environment())
    place = Path(tempfile.mkdtemp(prefix="ondam-"))
    named()
    rig = SoundRig(place / "sound")
    with session() as desktop:
        desktop.panel()
        rig.start()
        murmur(rig)
        environ = {name: rig.environment[name] for name in ("PULSE_SERVER", "PULSE_COOKIE")}
        environ["XDG_RUNTIME_DIR"] = desktop.environ()["XDG_RUNTIME_DIR"]
        settings = {"language": "en", "llm.max_tokens": "24"}
        house = House(place / "house", settings, "microphone", "speaker", environ)
        tray_home = house.home / "data"
        assert (tray_home / "tray").exists(), made.root
        house.open()
        try:
            asyncio.run(house.ready())
            asyncio.run(speak(house, 4))
            for language in ("en", "ko"):
                pictures(house, desktop, rig, folder, language, states)
        finally:
            house.close()
            rig.stop()
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    given = parser.parse_args().folder
    main(given or ROOT / "docs" / "images", given is not None)
