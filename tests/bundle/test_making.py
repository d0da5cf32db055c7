"""Where a bundle is made: what is seen before anything is fetched, and two at once."""

from __future__ import annotations

from pathlib import Path

import filelock
import pytest
from tests.bundle.small import HERE, Silent

from ondam.deploy import bundle_create
from ondam.deploy.bundle_create import Wish, create
from ondam.deploy.bundle_manifest import Manifest, Target
from ondam.errors import BundleError
from ondam.models.registry import Registry
from ondam.models.store import Store

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
