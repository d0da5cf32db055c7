"""A hub on loopback, as far as ``ondam models add`` asks it, that misbehaves on demand."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from json import dumps

from aiohttp import web

COMMIT = "a" * 40
LARGE = 10_000
"""From this size on a file is stored as a large one (LFS): the hub tells its SHA-256."""


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@dataclass
class FakeHub:
    """``files``: what the repository holds, at ``commit``."""

    files: dict[str, bytes]
    repository: str = "maker/tiny"
    commit: str = COMMIT
    url: str = ""
    replaced: dict[str, bytes] = field(default_factory=dict)
    """Path → what is sent in its place."""
    break_after: list[int] = field(default_factory=list)
    """A download ends after so many bytes: one entry for each that does."""
    reset: bool = False
    """It ends with the connection being reset, else with it being closed."""
    token: str = ""
    """Without it, downloads are refused as of a gated repository."""
    refuse: tuple[int, str] | None = None
    """Status and error code of every lookup."""
    hashes: str = ""
    """What it tells in place of git's hashes."""
    ranges: bool = True
    said: object = None
    """What it says of the repository, instead."""
    busy: dict[str, str] = field(default_factory=dict)
    """Headers of a 429, with which every download is refused."""
    endless: bool = False
    """A download never ends."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """(path, Range header) of each request."""

    def downloads(self) -> list[tuple[str, str]]:
        return [(path.rpartition("/")[2], span) for path, span in self.asked if "/resolve/" in path]

    async def lookup(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, ""))
        if self.refuse:
            status, code = self.refuse
            return web.json_response({"error": code}, status=status, headers={"X-Error-Code": code})
        if self.said is not None:
            return web.json_response(
                self.said, dumps=lambda said: said if isinstance(said, str) else dumps(said)
            )
        if request.match_info["name"] != self.repository.partition("/")[2]:
            return refused(404, "RepoNotFound")
        if request.match_info.get("revision") not in (None, "main", self.commit):
            return refused(404, "RevisionNotFound")
        siblings = [
            {
                "rfilename": path,
                "size": len(data),
                "blobId": self.hashes or git_hash(data),
                **(
                    {"lfs": {"size": len(data), "sha256": sha256(data), "pointerSize": 1}}
                    if len(data) >= LARGE
                    else {}
                ),
            }
            for path, data in self.files.items()
        ]
        return web.json_response({"id": self.repository, "sha": self.commit, "siblings": siblings})

    async def resolve(self, request: web.Request) -> web.StreamResponse:
        span = request.headers.get("Range", "")
        self.asked.append((request.path, span))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return refused(403 if "Authorization" in request.headers else 401, "GatedRepo")
        if self.busy:
            return web.Response(status=429, headers=self.busy)
        path = request.match_info["path"]
        data = self.replaced.get(path, self.files[path])
        start = int(span.removeprefix("bytes=").rstrip("-")) if span and self.ranges else 0
        answer = web.StreamResponse(status=206 if start else 200)
        if self.endless:
            await answer.prepare(request)
            with suppress(ConnectionError):
                while True:
                    await answer.write(data[start:])
            return answer
        answer.content_length = len(data) - start
        if start:
            answer.headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        await answer.prepare(request)
        if self.break_after and len(data) >= LARGE:
            await answer.write(data[start : start + self.break_after.pop(0)])
            await asyncio.sleep(0.05)  # let it reach the other side
            assert request.transport is not None
            request.transport.abort() if self.reset else request.transport.close()
            return answer
        await answer.write(data[start:])
        return answer


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def refused(status: int, code: str) -> web.Response:
    return web.json_response({"error": code}, status=status, headers={"X-Error-Code": code})


@contextmanager
def serve(hub: FakeHub) -> Iterator[FakeHub]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/api/models/{owner}/{name}", hub.lookup)
        app.router.add_get("/api/models/{owner}/{name}/revision/{revision}", hub.lookup)
        app.router.add_get("/{owner}/{name}/resolve/{revision}/{path:.+}", hub.resolve)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield hub
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
