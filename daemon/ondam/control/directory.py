"""What each caller may do, asked of the user database.

That may be a directory service which hangs (sssd, LDAP): whoever is looked up in it then is refused, and
nothing else waits.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Thread

from ondam.control.access import Access
from ondam.control.wire import Permission
from ondam.errors import ControlError

LOOKUP_S = 2.0
"""A user who is not found by then is refused; the next request asks on."""

KEPT_S = 5.0
"""What was found holds for so long: who joins a group need not wait longer."""

MOST_LOOKUPS = 8
"""Users who are looked up at once; one more is refused. A lookup that hangs holds a thread."""


class Directory:
    """``access``, asked in threads of its own.

    Those of asyncio's executor are for the daemon's own work, and one that hangs would keep it from ending.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._asked: dict[int, tuple[float, asyncio.Future[frozenset[Permission]]]] = {}
        """By uid: when it was asked for, in the loop's time, and what came of it."""

    async def of(self, uid: int) -> frozenset[Permission]:
        """What ``uid`` may do. ControlError ``control_directory_silent`` when nobody says so in time."""
        now = asyncio.get_running_loop().time()
        since, asked = self._asked.get(uid, (now, None))
        if asked is None or (asked.done() and now - since > KEPT_S):
            asked = self._look_up(uid)
            self._asked[uid] = (now, asked)
        await asyncio.wait({asked}, timeout=LOOKUP_S)
        if not asked.done():
            raise self._silent(uid)
        return asked.result()

    def _look_up(self, uid: int) -> asyncio.Future[frozenset[Permission]]:
        if sum(not asked.done() for _, asked in self._asked.values()) >= MOST_LOOKUPS:
            raise self._silent(uid)
        found: Future[frozenset[Permission]] = Future()
        Thread(target=self._fill, args=(uid, found), name="user-database", daemon=True).start()
        return asyncio.wrap_future(found)

    def _fill(self, uid: int, found: Future[frozenset[Permission]]) -> None:
        try:
            found.set_result(self._access.of(uid))
        except Exception as error:  # noqa: BLE001 - told to whoever waits for it
            found.set_exception(error)

    def _silent(self, uid: int) -> ControlError:
        return ControlError("control_directory_silent", uid=uid, seconds=LOOKUP_S)
