"""What is to be remembered of turns and could not be written: it stands among the faults until it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ondam.house.faults import Faults
from ondam.journal.recorder import BESIDE, RETRY_S, Recorder
from ondam.supervisor.status import Fault

WITHIN_S = 1.0
"""After a turn it is written, or is known not to be."""


class Unwritten:
    """Looks at the recorder, whose thread tells nobody; never at the disk. On the event loop alone."""

    def __init__(self, recorder: Recorder, journal: Path, faults: Faults) -> None:
        self._recorder = recorder
        self._journal = journal
        self._faults = faults
        self._looking = False
        """It is going to be looked whether turns that wait have been written."""

    def look_soon(self) -> None:
        """A turn is on its way to the recorder."""
        asyncio.get_running_loop().call_later(WITHIN_S, self.look)

    def look(self) -> None:
        """How it is now."""
        recorder, journal, faults = self._recorder, self._journal, self._faults
        if recorder.lost:
            facts: dict[str, object] = {"count": recorder.lost, "path": journal}
            faults.begin_once("journal", Fault("journal_turns_lost", facts))
        if recorder.trouble:
            facts = {"path": journal, "reason": recorder.trouble}
            faults.begin_once("waiting", Fault("journal_turns_wait", facts))
            self._look_again()
        else:
            faults.clear("waiting")
        if recorder.aside is not None:
            facts = {"path": journal, "aside": recorder.aside}
            faults.begin_once("aside", Fault("journal_begun_anew", facts))
        unkept = dict(recorder.unkept)
        for what in BESIDE:
            if what not in unkept:
                faults.clear(f"kept:{what}")
            else:
                path, reason = unkept[what]
                faults.begin_once(f"kept:{what}", Fault(f"{what}_not_kept", {"path": path, "reason": reason}))

    def _look_again(self) -> None:
        """When it is written is told too, though nobody may speak before."""
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._looking = False
        self.look()
