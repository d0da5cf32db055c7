from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.models.hub_server import COMMIT, FakeHub, git_hash, serve, sha256

from ondam.cli.models import command
from ondam.errors import ModelError
from ondam.models.card import ModelCard
from ondam.models.fetch import ensure
from ondam.models.hub import wanted
from ondam.models.progress import Silent
from ondam.models.registry import Registry
from ondam.models.store import Store

WEIGHTS = bytes(range(256)) * 8_000
"""2 MB: more than one piece of the network."""

CARD = ModelCard(id="tiny", stage="llm", languages=["en"], licence="MIT", repository="maker/tiny")


class Told(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("ondam.models.hub.PIECE", 50_000)
    files = {"model.safetensors": WEIGHTS, "config.json": b"{}", "sub/tokenizer.json": b"[1]"}
    with serve(FakeHub(files)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "models")


def fetch(store: Store, card: ModelCard = CARD) -> list[str]:
    told = Told()
    ensure([card], store, Registry(), told)
    return told.lines


def fails(store: Store, card: ModelCard = CARD) -> ModelError:
    with pytest.raises(ModelError) as raised:
        fetch(store, card)
    return raised.value


def test_a_repository_is_fetched_proven_and_written_down(hub: FakeHub, store: Store) -> None:
    assert store.check(CARD).state == "missing"
    (line,) = fetch(store)
    assert line == f"tiny: 3 files, 0.00 GB, from {hub.url}/maker/tiny at {COMMIT[:12]}"
    assert store.path(CARD) == store.folder("tiny")
    assert (store.folder("tiny") / "model.safetensors").read_bytes() == WEIGHTS
    assert (store.folder("tiny") / "sub/tokenizer.json").read_bytes() == b"[1]"
    record = json.loads((store.folder("tiny") / "hub.json").read_text())
    assert (record["repository"], record["revision"]) == ("maker/tiny", COMMIT)
    assert {file["path"]: file["sha256"] for file in record["files"]} == {
        "model.safetensors": sha256(WEIGHTS),
        "config.json": sha256(b"{}"),
        "sub/tokenizer.json": sha256(b"[1]"),
    }
    assert not (store.folder("tiny") / ".downloads").exists()


def test_what_is_whole_asks_nobody(hub: FakeHub, store: Store) -> None:
    fetch(store)
    hub.asked.clear()
    fetch(store)
    assert hub.asked == []


def test_what_is_in_the_folder_is_held_to_what_was_fetched(hub: FakeHub, store: Store) -> None:
    fetch(store)
    (store.folder("tiny") / "config.json").write_bytes(b"[]")
    condition = store.check(CARD)
    assert (condition.state, [fault.fault for fault in condition.faults]) == ("broken", ["hash"])
    hub.asked.clear()
    fetch(store)
    assert hub.downloads() == [("config.json", "")]
    assert store.check(CARD, full=True).state == "whole"


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_that_drops_half_way_goes_on_from_there(hub: FakeHub, store: Store, reset: bool) -> None:
    hub.break_after, hub.reset = [700_000, 800_000], reset
    fetch(store)
    spans = [span for name, span in hub.downloads() if name == "model.safetensors"]
    # What came of the first two is taken up, in whole pieces.
    starts = [int(span.removeprefix("bytes=").rstrip("-") or 0) for span in spans]
    assert starts[0] == 0 < starts[1] <= 700_000 < starts[2] <= 1_500_000 and len(starts) == 3
    assert store.check(CARD, full=True).state == "whole"


def test_after_the_process_has_ended_it_goes_on_where_it_stopped(hub: FakeHub, store: Store) -> None:
    part = store.folder("tiny") / ".downloads" / f"{sha256(WEIGHTS)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(WEIGHTS[:1_500_000])
    fetch(store)
    assert ("model.safetensors", "bytes=1500000-") in hub.downloads()
    assert store.check(CARD, full=True).state == "whole"


def test_a_beginning_of_something_else_is_thrown_away(hub: FakeHub, store: Store) -> None:
    part = store.folder("tiny") / ".downloads" / f"{sha256(WEIGHTS)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1_000)
    fetch(store)
    assert [span for name, span in hub.downloads() if name == "model.safetensors"] == ["bytes=1000-", ""]
    assert store.check(CARD, full=True).state == "whole"


def test_a_connection_that_drops_without_end_is_told_and_keeps_what_came(
    hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.models.hub.ATTEMPTS", 1)
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    hub.break_after, hub.reset = [600_000] + [0] * 20, True
    error = fails(store)
    assert error.code == "hub_broke_off" and error.message("en").next == "ondam models add tiny"
    (part,) = (store.folder("tiny") / ".downloads").glob("*.part")
    assert 0 < part.stat().st_size <= 600_000
    hub.break_after, hub.asked = [], []
    fetch(store)
    assert [span for name, span in hub.downloads() if name == "model.safetensors"] != [""]
    assert store.check(CARD, full=True).state == "whole"


def test_a_hub_that_knows_no_ranges_is_read_from_the_start(hub: FakeHub, store: Store) -> None:
    hub.break_after, hub.ranges = [700_000], False
    fetch(store)
    assert store.check(CARD, full=True).state == "whole"


@pytest.mark.parametrize(
    ("path", "sent"),
    [("model.safetensors", b"y" * len(WEIGHTS)), ("config.json", b"[]"), ("config.json", b"{} ")],
)
def test_a_file_that_is_not_what_the_hub_announced_is_refused(
    hub: FakeHub, store: Store, path: str, sent: bytes
) -> None:
    hub.replaced = {path: sent}
    error = fails(store)
    assert error.code == "hub_file_differs" and path in str(error)
    assert store.check(CARD).state == "missing"
    hub.replaced = {}
    fetch(store)
    assert store.check(CARD, full=True).state == "whole"


def test_a_gated_model_is_explained_and_fetched_with_the_token(
    hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_right"
    error = fails(store)
    told = error.message("en")
    assert error.code == "hub_gated"
    assert f"1. Open {hub.url}/maker/tiny and accept." in told.next
    assert "HF_TOKEN=hf_… ondam models add tiny" in told.next
    assert "이용 조건에 동의" in error.message("ko").text
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert fails(store).code == "hub_gated"
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    fetch(store)
    assert store.check(CARD).state == "whole"


def test_a_token_in_a_file_counts(hub: FakeHub, store: Store, tmp_path: Path) -> None:
    hub.token = "hf_right"
    (tmp_path / "token").write_text("hf_right\n")
    fetch(store)
    assert store.check(CARD).state == "whole"


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "RepoNotFound", "hub_no_repository"),
        (401, "RepoNotFound", "hub_no_repository"),
        (403, "GatedRepo", "hub_gated"),
        (403, "", "hub_token_refused"),
        (500, "", "hub_refused"),
    ],
)
def test_each_refusal_is_told_as_what_it_is(
    hub: FakeHub, store: Store, status: int, code: str, expected: str
) -> None:
    hub.refuse = (status, code)
    assert fails(store).code == expected


@pytest.mark.parametrize("told", ["../../../outside", "A" * 40, "no hash"])
def test_a_hub_that_tells_no_hashes_writes_nothing(hub: FakeHub, store: Store, told: str) -> None:
    hub.hashes = told
    assert fails(store).code == "hub_refused"
    assert hub.downloads() == [] and not store.folder("tiny").exists()


def test_a_revision_that_is_gone_is_named(hub: FakeHub, store: Store) -> None:
    error = fails(store, CARD.model_copy(update={"revision": "b" * 40}))
    assert error.code == "hub_no_revision" and "b" * 40 in str(error)


def test_a_pinned_revision_is_what_is_asked_for(hub: FakeHub, store: Store) -> None:
    card = CARD.model_copy(update={"revision": COMMIT})
    fetch(store, card)
    assert all(f"/resolve/{COMMIT}/" in path for path, _ in hub.asked if "/resolve/" in path)
    assert store.check(card).state == "whole"
    # A card that is pinned to another commit asks for another model.
    assert store.check(CARD.model_copy(update={"revision": "b" * 40})).state == "missing"


def test_a_newer_commit_replaces_the_older_one_whole(hub: FakeHub, store: Store) -> None:
    fetch(store, CARD.model_copy(update={"revision": COMMIT}))
    hub.commit = "c" * 40
    hub.files = {"model.safetensors": WEIGHTS, "new.json": b"{}"}
    newer = CARD.model_copy(update={"revision": hub.commit})
    hub.asked.clear()
    hub.replaced = {"new.json": b"wrong"}
    assert fails(store, newer).code == "hub_file_differs"
    assert store.check(CARD).state == "whole"  # the older one
    hub.replaced = {}
    fetch(store, newer)
    assert store.check(newer, full=True).state == "whole"
    assert not (store.folder("tiny") / "config.json").exists()


def test_a_machine_without_a_network_is_told_within_seconds(
    hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        began = time.monotonic()
        error = fails(store)
    assert time.monotonic() - began < 5
    assert error.code == "hub_unreachable" and "copy its folder models/tiny" in error.message("en").next


def test_a_hub_that_says_nothing_is_told_within_seconds(
    hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.models.hub.LOOKUP_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        error = fails(store)
    assert error.code == "hub_unreachable" and "no answer in time" in str(error)


def test_who_forbids_the_hub_is_obeyed(hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert fails(store).code == "hub_offline"
    assert hub.asked == []


def test_room_on_the_disk_is_looked_at_first(
    hub: FakeHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ondam.models.store.MARGIN", 10**18)
    error = fails(store)
    assert error.code == "disk_too_small" and hub.downloads() == []


def test_only_the_files_that_a_card_names_are_fetched(hub: FakeHub, store: Store) -> None:
    hub.files = {"a-Q4.gguf": WEIGHTS, "a-Q8.gguf": WEIGHTS + b"8", "config.json": b"{}"}
    card = CARD.model_copy(update={"repository_files": ["*-Q4.gguf"], "entry": "a-Q4.gguf"})
    fetch(store, card)
    assert [name for name, _ in hub.downloads()] == ["a-Q4.gguf"]
    assert store.path(card) == store.folder("tiny") / "a-Q4.gguf"
    gone = card.model_copy(update={"id": "gone", "repository_files": ["b.gguf"]})
    assert fails(store, gone).code == "hub_no_files"


def test_the_same_contents_under_two_names_come_once(hub: FakeHub, store: Store) -> None:
    hub.files = {"a.json": b"{}", "b.json": b"{}"}
    fetch(store)
    assert len(hub.downloads()) == 1
    assert store.check(CARD, full=True).state == "whole"


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("model-00001-of-00002.safetensors", True),
        ("audiovae.pth", True),
        ("speech_tokenizer/config.json", True),
        ("LICENSE", True),
        ("pytorch_model-00001-of-00002.bin", False),
        ("onnx/model.onnx", False),
        ("README.md", False),
        (".gitattributes", False),
        ("sub/.hidden", False),
        ("../outside", False),
        ("/etc/passwd", False),
        ("card.json", False),
        ("hub.json", False),
    ],
)
def test_what_belongs_to_a_model(path: str, taken: bool) -> None:
    assert (path in wanted(CARD, ["model.safetensors", path])) is taken


def test_without_safetensors_other_weights_are_the_model() -> None:
    assert wanted(CARD, ["model.bin", "onnx/vocoder.onnx"]) == ["model.bin", "onnx/vocoder.onnx"]


def test_the_command_tells_where_a_model_is_from_and_at_which_commit(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path))
    monkeypatch.setattr("ondam.models.catalog.daemon_models", lambda: [CARD])
    before = json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)["models"]
    (listed,) = (model for model in before if model["id"] == "tiny")
    assert (listed["origin"], listed["repository"], listed["revision"]) == ("hub", "maker/tiny", None)
    added = CliRunner().invoke(command, ["add", "tiny", "--json"], catch_exceptions=False)
    (model,) = json.loads(added.stdout)["models"]
    assert (model["state"], model["revision"], model["size"]) == ("whole", COMMIT, len(WEIGHTS) + 5)
    Path(model["path"], "config.json").unlink()
    verified = CliRunner().invoke(command, ["verify", "tiny"])
    assert verified.exit_code == 5 and "→ ondam models add tiny" in verified.stderr


FILE = {"rfilename": "config.json", "size": 2, "blobId": git_hash(b"{}")}


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "null",
        "3",
        "[" * 200_000,
        {"siblings": [FILE]},
        {"id": "maker/tiny", "sha": 5, "siblings": [FILE]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": "abc"},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [None]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "rfilename": 5}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{"size": 2}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "size": "2"}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "size": -2}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "size": 2.5}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "lfs": "x"}]},
        {"id": "maker/tiny", "sha": COMMIT, "siblings": [{**FILE, "lfs": {"size": 2, "sha256": None}}]},
    ],
    ids=lambda said: str(said)[:60],
)
def test_whoever_answers_as_no_hub_is_told_as_such(hub: FakeHub, store: Store, said: object) -> None:
    hub.said = said
    assert fails(store).code == "hub_refused"
    assert hub.downloads() == []


@pytest.mark.parametrize(
    "name", ["a\0b", "a\ud800", "a\nb", "./hub.json", "sub//a", "a/./b", "\u202egpj.exe"]
)
def test_names_of_no_file_and_second_names_of_one_are_left_where_they_are(name: str) -> None:
    assert wanted(CARD, [name, "good.json"]) == ["good.json"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("busy", [{"Retry-After": "3600"}, {"RateLimit": '"api";r=0;t=300'}])
def test_a_hub_that_asks_to_wait_for_long_is_told_and_not_waited_for(
    hub: FakeHub, store: Store, busy: dict[str, str]
) -> None:
    hub.busy = busy
    began = time.monotonic()
    error = fails(store)
    assert error.code == "hub_refused" and "HTTP 429, and asks to wait 3" in str(error.facts["reason"])
    assert time.monotonic() - began < 10
    hub.busy = {}
    fetch(store)
    assert store.check(CARD, full=True).state == "whole"


@pytest.mark.timeout(30)
def test_a_file_without_end_is_cut_at_the_size_that_was_announced(hub: FakeHub, store: Store) -> None:
    hub.endless = True
    error = fails(store)
    assert error.code == "hub_file_differs"
    assert error.facts["found_size"] == int(str(error.facts["expected_size"])) + 1
    hub.endless = False
    fetch(store)
    assert store.check(CARD, full=True).state == "whole"


def test_notes_that_are_nested_without_end_are_no_notes(hub: FakeHub, store: Store) -> None:
    fetch(store)
    for name in ("hub.json", ".verified.json"):
        (store.folder("tiny") / name).write_text("[" * 100_000)
    assert store.check(CARD).state != "whole"
    (store.root / "other").mkdir()
    (store.root / "other" / "card.json").write_text("[" * 100_000)
    broken: list[ModelError] = []
    store.imported(broken.append)
    assert [error.code for error in broken] == ["card_broken"]
    fetch(store)
    assert store.check(CARD, full=True).state == "whole"
