"""Where a bundle is made: what is seen before anything is fetched, and two at once."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import filelock
import pytest
from tests.bundle.small import HERE, Silent

from ondam.deploy import bundle_create, bundle_debian, bundle_licences
from ondam.deploy.bundle_create import Wish, create
from ondam.deploy.bundle_debian import Package
from ondam.deploy.bundle_manifest import Manifest, Target
from ondam.deploy.bundle_wheels import Choice, Pinned
from ondam.errors import BundleError, ModelError
from ondam.models.card import ModelCard, ModelFile
from ondam.models.registry import Registry
from ondam.models.store import Condition, Store

WISH = Wish(Target(HERE.system, HERE.machine, HERE.pythons[0]), "2.28", (), ())


def made(out: Path, cache: Path, told: Silent) -> Manifest:
    store, registry = Store(cache / "models"), Registry(no_index=True)
    return create(WISH, out, store=store, registry=registry, cache=cache, key=None, reporter=told)


def test_a_folder_that_is_not_there_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as caught:
        made(tmp_path / "nowhere" / "b.bundle", tmp_path / "cache", told := Silent())
    assert caught.value.code == "bundle_write_failed" and str(tmp_path / "nowhere") in str(caught.value)
    assert told.lines == [] and not (tmp_path / "cache").exists()


def test_two_that_are_made_at_once_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    other = filelock.FileLock(cache / ".lock")
    other.acquire()
    told = Silent()
    alone: list[bool] = []

    class Ends(Silent):
        def say(self, line: str) -> None:
            told.say(line)
            other.release()  # the other one is done as soon as somebody waits for it

    def making(*_: object) -> None:
        alone.append(not other.is_locked)

    monkeypatch.setattr(bundle_create, "_create", making)
    made(tmp_path / "b.bundle", cache, Ends())
    assert alone == [True]
    assert [line for line in told.lines if "is being made" in line] == told.lines != []


CONTENT = b"as it was fetched" * 10
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ROTTEN = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]


def test_a_wheel_that_rotted_in_the_cache_is_fetched_again_and_never_packed(tmp_path: Path) -> None:
    cache, shop = tmp_path / "cache", tmp_path / "shop"
    cache.mkdir()
    shop.mkdir()
    (cache / f"{SHA256}.whl").write_bytes(ROTTEN)
    choice = Choice(
        Pinned("toy", "1.0", frozenset({SHA256})), "toy-1.0-py3-none-any.whl", SHA256, len(CONTENT)
    )
    part = bundle_create._Part("ondam", "cpu", None, [choice])
    registry = Registry(find_links=(shop.as_uri(),), no_index=True)
    with pytest.raises(ModelError) as caught:
        bundle_create._fetched([part], registry, cache, Silent())
    assert caught.value.code == "wheel_not_found"
    (shop / choice.filename).write_bytes(CONTENT)
    found = bundle_create._fetched([part], registry, cache, Silent())
    assert found[SHA256].read_bytes() == CONTENT


def test_a_debian_package_that_rotted_in_the_cache_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package("toy_1%3a2-3_all.deb", len(CONTENT), SHA256)
    path = tmp_path / package.file
    path.write_bytes(ROTTEN)
    (tmp_path / f"{package.file}.copyright").write_bytes(b"")
    brings = CONTENT
    asked: list[tuple[str, ...]] = []

    def apt(*arguments: str, folder: Path | None = None) -> str:
        asked.append(arguments)
        if not path.exists():
            path.write_bytes(brings)
        return ""

    monkeypatch.setattr(bundle_debian, "_apt", apt)
    assert bundle_debian.absent([package], tmp_path) == [package]
    assert bundle_debian.download([package], tmp_path, Silent().task("")) == [path]
    assert path.read_bytes() == CONTENT and [*tmp_path.iterdir()] == [path]
    assert [each[-1] for each in asked] == ["toy=1:2-3"]
    bundle_debian.download([package], tmp_path, Silent().task(""))
    assert len(asked) == 1, "what is whole stays"
    path.unlink()
    brings = ROTTEN
    with pytest.raises(BundleError) as caught:
        bundle_debian.download([package], tmp_path, Silent().task(""))
    assert caught.value.code == "bundle_apt_failed"


def test_a_python_that_is_carried_is_listed_with_its_licence(tmp_path: Path) -> None:
    packed = tmp_path / "python.tar"
    with tarfile.open(packed, "w") as out:
        for name in ("bin/python3.11", "lib/python3.11/LICENSE.txt", "lib/python3.11/gettext.py"):
            info = tarfile.TarInfo(name)
            info.size = len(CONTENT)
            out.addfile(info, io.BytesIO(CONTENT))
    found = bundle_licences.of_python(packed, "3.11")
    assert found.texts == {"lib_python3.11_LICENSE.txt": CONTENT}
    assert bundle_licences.overview([found]).splitlines()[1].decode() == (
        "python\t3.11\tPSF-2.0\tlicences/python-3.11/lib_python3.11_LICENSE.txt"
    )


def room_for(folder: Path, free_mb: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is told before a bundle of wheels (30 MB, 10 of them here), models (50, 20) and packages (5)."""

    def card(name: str, size: int) -> ModelCard:
        file = ModelFile(path="weights", size=size, sha256=SHA256)
        return ModelCard(id=name, stage="llm", languages=["en"], licence="MIT", files=[file])

    def whole(card: ModelCard) -> Condition:
        return Condition(card, "whole" if card.id == "here" else "missing")

    store, cache = Store(folder / "store" / "models"), folder / "cache"
    for each in (cache, folder / "out"):
        each.mkdir(exist_ok=True)
    (cache / f"{'a' * 64}.whl").touch()
    choices = [
        Choice(Pinned("toy", "1.0", frozenset()), "toy-1.0.whl", sha256 * 64, size * 1_000_000)
        for sha256, size in {"a": 10, "b": 20}.items()
    ]
    wish = replace(WISH, models=(card("here", 20_000_000), card("new", 30_000_000)))
    monkeypatch.setattr(store, "check", whole)
    usage = type("Usage", (), {"free": free_mb * 1_000_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    told = Silent()
    part = bundle_create._Part("ondam", "cpu", None, choices)
    packages = [Package("toy_1_all.deb", 5_000_000, SHA256)]
    bundle_create._tell_size(wish, [part], packages, store, cache, folder / "out" / "b.bundle", told)
    return told.lines


def test_all_that_is_to_be_fetched_is_told_and_has_room_on_its_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 20 + 5 into the cache, twice 30 into the store, 85 for the bundle: 170, and a little.
    assert "To be fetched: 55 MB." in room_for(tmp_path, 179, monkeypatch)[0]
    with pytest.raises(BundleError) as caught:
        room_for(tmp_path, 178, monkeypatch)
    told = caught.value.message("en")
    assert "178 MB are needed" in told.text and f"{tmp_path / 'out'} has too little room" in told.text
    assert "--cache DIR" in told.next
    monkeypatch.setattr(bundle_create, "_disk_of", hash)
    assert room_for(tmp_path, 90, monkeypatch)
