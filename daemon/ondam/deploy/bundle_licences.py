"""Licences of everything that a bundle carries, with their texts as far as they are shipped."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path

from ondam.models.card import ModelCard

TEXT = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
"""Names of files that a licence may stand in (PEP 639, and what came before it)."""


@dataclass(frozen=True, slots=True)
class Component:
    """A package or a model, and under what it may be passed on."""

    name: str
    version: str
    licence: str
    """As it declares itself."""
    texts: dict[str, bytes] = field(default_factory=dict)
    """File name → contents."""

    @property
    def folder(self) -> str:
        """Of its texts."""
        return f"licences/{self.name}-{self.version}" if self.version else f"licences/{self.name}"


def of_wheel(wheel: Path) -> Component:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        meta = next(name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        told = HeaderParser().parsestr(opened.read(meta).decode("utf-8", "replace"))
        info = meta.partition("/")[0] + "/"
        texts = {}
        for name in names:
            if name.startswith(info) and not name.endswith("/") and TEXT.search(name.rpartition("/")[2]):
                texts[_flat(name.removeprefix(info).removeprefix("licenses/"))] = opened.read(name)
    return Component(str(told["Name"]), str(told["Version"]), _declared(told.items()), texts)


def of_debian(package: Path, text: bytes | None) -> Component:
    """A Debian package: its own file says it all."""
    name, version, _ = package.name.split("_")
    texts = {} if text is None else {"copyright": text}
    return Component(f"debian-{name}", version, "see the text" if text else "see its source package", texts)


def of_python(packed: Path, version: str) -> Component:
    """A Python that is carried, with what its tar brings of licences."""
    texts = {}
    with tarfile.open(packed) as opened:
        for member in opened:
            content = opened.extractfile(member) if TEXT.match(member.name.rpartition("/")[2]) else None
            if content is not None:
                texts[_flat(member.name)] = content.read()
    return Component("python", version, "PSF-2.0", texts)


def of_model(card: ModelCard, texts: dict[str, bytes]) -> Component:
    """A model, with the text of its licence where we have one."""
    found = {f"{card.licence}.txt": texts[card.licence]} if card.licence in texts else {}
    return Component(f"model-{card.id}", "", card.licence, found)


def overview(components: Iterable[Component]) -> bytes:
    """A table: what it is, under what, and where the text is."""
    lines = ["component\tversion\tlicence\ttexts"]
    for each in sorted(components, key=lambda component: (component.name.lower(), component.version)):
        where = " ".join(f"{each.folder}/{name}" for name in sorted(each.texts)) or "-"
        lines.append(f"{each.name}\t{each.version}\t{each.licence}\t{where}")
    return ("\n".join(lines) + "\n").encode()


def _declared(headers: Iterable[tuple[str, str]]) -> str:
    """The expression, else the classifiers, else the first line of what stands there."""
    told: dict[str, list[str]] = {}
    for name, value in headers:
        told.setdefault(name.lower(), []).append(" ".join(value.split("\n")[0].split()))
    if expression := told.get("license-expression"):
        return expression[0]
    classifiers = list(_classified(told.get("classifier", [])))
    if classifiers:
        return ", ".join(classifiers)
    return (told.get("license") or ["not declared"])[0][:100] or "not declared"


def _classified(classifiers: Iterable[str]) -> Iterator[str]:
    for classifier in classifiers:
        if classifier.startswith("License ::"):
            yield classifier.rpartition(" :: ")[2]


def _flat(path: str) -> str:
    """A name that is printable and has no folders."""
    return "".join(c if c.isprintable() and c not in "/\\" else "_" for c in path)
