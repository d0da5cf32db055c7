"""Whether an engine's program is what it was built from: its folder and the kit, as its environment has them.

What else is in the environment came by a lock with hashes; these two were copied, and a copy can be changed
by whoever may write there. Hashing both takes some 5 ms, and is done at every start.
"""

from __future__ import annotations

from pathlib import Path

from ondam.errors import EngineError
from ondam.supervisor.launch import Home
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.stamp import Stamp, kit, source_of, sources


def refuse_changed(engine: EngineFolder, home: Home, stamp: Stamp) -> None:
    """Raises EngineError naming the first file that is not what ``stamp`` says was built."""
    folder = home.folder
    copied_kit = folder.parent / "kit"
    if not copied_kit.is_dir():
        return  # not built by us: an engine that is put together by hand brings what it needs
    if source_of(copied_kit, folder) == stamp.source:
        return
    raise EngineError("engine_changed", engine=engine.name, path=_changed(engine, folder, copied_kit))


def _changed(engine: EngineFolder, folder: Path, copied_kit: Path) -> Path:
    """The first file that differs from the package's; the folder where none does: that has changed since."""
    for there, here in ((copied_kit, kit()), (folder, engine.path)):
        ours, theirs = dict(sources(here)), dict(sources(there))
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                return there / name
    return folder
