"""What compiling a variant takes of this machine. Asked before anything is downloaded."""

from __future__ import annotations

import shutil

from ondam.errors import EngineError
from ondam.messages import Phrase, catalog
from ondam.places import Places
from ondam.supervisor.environment import environment_used, is_current
from ondam.supervisor.manifest import EngineFolder
from ondam.supervisor.stamp import Stamp


def refuse_without_tool(engine: EngineFolder, variant: str) -> None:
    """Raises EngineError where the program that compiles ``variant`` is not on the PATH."""
    tool = engine.manifest.environment.tools.get(variant)
    if tool is None or shutil.which(tool) is not None:
        return
    code = f"engine_tool_{tool}"
    how = Phrase(code) if code in catalog() else ""
    raise EngineError("engine_tool_missing", engine=engine.name, variant=variant, tool=tool, how=how)


def gate(engine: EngineFolder, variant: str, places: Places) -> None:
    """``refuse_without_tool``, but for an environment that is made already, or is only copied anew."""
    made = Stamp.read(environment_used(engine, places))
    wanted = Stamp.wanted(engine, variant)
    if (made is None or made.packages != wanted.packages) and not is_current(engine, variant, places):
        refuse_without_tool(engine, variant)
