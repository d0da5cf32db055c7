"""A package index on loopback that misbehaves on demand, and wheels made by hand."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ondam.models.card import ModelCard, ModelFile, WheelMember


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class TinyWheel:
    package: str
    members: dict[str, bytes]

    @property
    def name(self) -> str:
        return f"{self.package.replace('-', '_')}-1.0-py3-none-any.whl"

    @property
    def data(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for member, data in self.members.items():
                archive.writestr(zipfile.ZipInfo(member), data)
        return buffer.getvalue()

    def part(self, member: str) -> WheelMember:
        return WheelMember(package=self.package, version="1.0", sha256=sha256(self.data), member=member)


def file_card(path: str, *pieces: tuple[TinyWheel, str]) -> ModelFile:
    whole = b"".join(wheel.members[member] for wheel, member in pieces)
    return ModelFile(
        path=path,
        size=len(whole),
        sha256=sha256(whole),
        parts=[wheel.part(member) for wheel, member in pieces],
    )


def model(model_id: str, *files: ModelFile) -> ModelCard:
    return ModelCard(
        id=model_id, stage="llm", languages=["en"], licence="MIT", entry=files[0].path, files=[*files]
    )


@dataclass
class FakeIndex:
    """What it serves, how it fails, and what it was asked."""

    wheels: list[TinyWheel]
    url: str = ""
    replaced: dict[str, bytes] = field(default_factory=dict)
    """Wheel name → what is sent in its place."""
    break_after: int | None = None
    """The first download ends after so many bytes; later ones do not."""
    hang_after: int | None = None
    """A download stops after so many bytes, until ``let_go`` is set."""
    let_go: threading.Event = field(default_factory=threading.Event)
    hanging: threading.Event = field(default_factory=threading.Event)
    ranges: bool = True
    redirect: bool = False
    password: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """(path, Range header) of each request."""

    def downloads(self) -> list[tuple[str, str]]:
        return [(path, span) for path, span in self.asked if path.startswith("/files/")]


@contextmanager
def serve(index: FakeIndex) -> Iterator[FakeIndex]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            index.asked.append((self.path, self.headers.get("Range", "")))
            if index.password and index.password not in self.headers.get("Authorization", ""):
                self._send(401, b"")
            elif self.path.startswith("/simple/"):
                self._page(self.path.removeprefix("/simple/").strip("/"))
            elif self.path.startswith("/files/") and index.redirect:
                self._send(302, b"", {"Location": self.path.replace("/files/", "/mirror/")})
            else:
                self._wheel(self.path.rpartition("/")[2])

        def _page(self, package: str) -> None:
            found = [wheel for wheel in index.wheels if wheel.package == package]
            if not found:
                self._send(404, b"")
                return
            links = [f'<a href="/files/{wheel.name}#sha256={sha256(wheel.data)}">w</a>' for wheel in found]
            self._send(200, "".join(links).encode(), {"Content-Type": "text/html"})

        def _wheel(self, name: str) -> None:
            data = index.replaced.get(name) or next(w.data for w in index.wheels if w.name == name)
            span = self.headers.get("Range", "")
            start = int(span.removeprefix("bytes=").rstrip("-")) if span and index.ranges else 0
            if start >= len(data):
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            body = data[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if index.hang_after is not None:
                self.wfile.write(body[: index.hang_after])
                self.wfile.flush()
                index.hanging.set()
                index.let_go.wait(60)
                self.close_connection = True
            elif index.break_after is not None:
                self.wfile.write(body[: index.break_after])
                index.break_after = None
                self.close_connection = True
            else:
                self.wfile.write(body)

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        index.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
