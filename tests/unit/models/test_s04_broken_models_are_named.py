"""Field case S04: a model file that is cut off, flipped, swapped, a pointer, a page, or closed to us."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.models.registry_server import TinyWheel, file_card, model, sha256
from tests.unit.models.unprivileged import without_privileges

from ondam.cli.models import command
from ondam.errors import ModelError
from ondam.messages import catalog
from ondam.models.card import ModelCard, ModelFile
from ondam.models.store import Store

ONE = TinyWheel("one", {"weights": b"\x01" * 4_000})
TWO = TinyWheel("two", {"weights": b"\x02" * 4_000})
FIRST = model("first", file_card("weights.bin", (ONE, "weights")))
SECOND = model("second", file_card("weights.bin", (TWO, "weights")))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4000\n"


@pytest.fixture
def store(open_folder: Path) -> Store:
    """Holds both models, whole, and looked at once."""
    store = Store(open_folder / "models")
    for card, wheel in ((FIRST, ONE), (SECOND, TWO)):
        store.folder(card.id).mkdir(parents=True)
        (store.folder(card.id) / "weights.bin").write_bytes(wheel.members["weights"])
        assert store.check(card).state == "whole"
    return store


def weights(store: Store, card: ModelCard = FIRST) -> Path:
    return store.folder(card.id) / "weights.bin"


def cut_to(size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, size)


def flip_a_byte_and_set_the_time_back(path: Path) -> None:
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[2_000] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        pytest.param(cut_to(0), "size", id="empty"),
        pytest.param(cut_to(1_000), "size", id="1 kB"),
        pytest.param(cut_to(3_999), "size", id="a byte short"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes() + b"\0"), "size", id="a byte long"),
        pytest.param(flip_a_byte_and_set_the_time_back, "hash", id="a byte flipped"),
        pytest.param(lambda path: path.write_bytes(POINTER), "pointer", id="LFS pointer"),
        pytest.param(lambda path: path.write_bytes(b"\n<!DOCTYPE html><p>404"), "page", id="web page"),
    ],
)
def test_a_spoilt_file_is_named_with_what_was_expected_and_found(
    store: Store, spoil: Callable[[Path], None], fault: str
) -> None:
    spoil(weights(store))
    condition = store.check(FIRST)
    assert (condition.state, [f.fault for f in condition.faults]) == ("broken", [fault])
    with pytest.raises(ModelError) as caught:
        store.path(FIRST)
    found = weights(store).read_bytes()
    for expected in (
        str(weights(store)),
        "4,000 bytes",
        FIRST.files[0].sha256,
        f"{len(found):,} bytes",
        sha256(found),
    ):
        assert expected in str(caught.value)
    assert caught.value.exit_code == 5
    assert caught.value.message().next == "ondam models add first"
    assert store.path(SECOND) == weights(store, SECOND)


def test_two_models_that_were_swapped_are_both_named(store: Store) -> None:
    weights(store).rename(store.root / "aside")
    weights(store, SECOND).rename(weights(store))
    (store.root / "aside").rename(weights(store, SECOND))
    assert [store.check(card).state for card in (FIRST, SECOND)] == ["broken", "broken"]


def test_two_folders_that_were_swapped_are_both_named(store: Store) -> None:
    store.folder("first").rename(store.root / "aside")
    store.folder("second").rename(store.folder("first"))
    (store.root / "aside").rename(store.folder("second"))
    assert [store.check(card).faults[0].fault for card in (FIRST, SECOND)] == ["hash", "hash"]


def test_a_file_that_may_not_be_read_is_named(store: Store) -> None:
    weights(store).chmod(0)
    catalog()  # read by somebody who may
    with without_privileges(), pytest.raises(ModelError, match=r"weights\.bin: cannot be read \(Permission"):
        store.path(FIRST)
    with without_privileges():
        assert store.path(SECOND) == weights(store, SECOND)


def test_missing_weights_are_told_with_path_and_command(store: Store) -> None:
    weights(store).unlink()
    with pytest.raises(ModelError) as caught:
        store.path(FIRST)
    assert str(weights(store)) in str(caught.value)
    assert caught.value.message("ko").next == "ondam models add first"
    assert store.check(FIRST).state == "missing"


def test_a_model_without_one_of_its_files_is_partial(store: Store) -> None:
    card = model("first", *FIRST.files, ModelFile(path="notes", size=1, sha256="0" * 64))
    assert store.check(card).state == "partial"
    with pytest.raises(ModelError, match="notes: missing"):
        store.path(card)


def test_what_was_found_whole_is_not_hashed_again(store: Store) -> None:
    hashed: list[int] = []
    store.check(FIRST, on_bytes=hashed.append)
    assert hashed == []
    store.check(FIRST, full=True, on_bytes=hashed.append)
    assert hashed == [4_000]


def test_half_a_record_only_costs_a_hash(store: Store) -> None:
    (store.folder("first") / ".verified.json").write_text('{"weights.bin": [40')
    hashed: list[int] = []
    assert store.check(FIRST, on_bytes=hashed.append).state == "whole"
    assert hashed == [4_000]


def test_a_store_that_may_only_be_read_works(store: Store) -> None:
    (store.folder("first") / ".verified.json").unlink()
    store.folder("first").chmod(0o555)
    with without_privileges():
        assert store.path(FIRST) == weights(store)
    assert not (store.folder("first") / ".verified.json").exists()


def test_a_store_that_may_not_be_written_is_told_when_it_is_changed(store: Store) -> None:
    store.root.chmod(0o555)
    with without_privileges(), pytest.raises(ModelError, match="cannot be written") as caught:
        store.remove("first")
    assert caught.value.exit_code == 5
    assert store.check(FIRST).state == "whole"


def test_verify_exits_with_5_and_says_so_in_json(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_HOME", str(open_folder))
    folder = open_folder / "data/models/silero-vad"
    folder.mkdir(parents=True)
    (folder / "silero_vad.onnx").write_bytes(POINTER)
    result = CliRunner().invoke(command, ["verify", "--json"])
    (found,) = json.loads(result.stdout)["models"]
    assert result.exit_code == 5
    assert (found["id"], found["state"]) == ("silero-vad", "broken")
    assert found["faults"][0] == {
        "path": str(folder / "silero_vad.onnx"),
        "fault": "pointer",
        "expected": {
            "size": 2_327_524,
            "sha256": "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        },
        "found": {"size": len(POINTER), "sha256": sha256(POINTER)},
        "reason": None,
    }
    shown = CliRunner().invoke(command, ["verify"])
    assert shown.exit_code == 5
    assert "a Git LFS pointer" in shown.stdout
    assert "ondam models add silero-vad" in shown.stderr
