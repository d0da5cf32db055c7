from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from ondam.errors import ModelError
from ondam.models.gguf import read_header
from ondam.models.importing import bring, recognise
from ondam.models.progress import Silent
from ondam.models.store import Store


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_bytes(name: str = "Tiny 모델", languages: tuple[str, ...] = ("ko", "en")) -> bytes:
    """A GGUF 3 file with one Q4_0 tensor of 64 weights: two blocks of 18 bytes, after 32-byte alignment."""
    pairs = [
        ("general.architecture", 8, text("llama")),
        ("general.name", 8, text(name)),
        ("general.file_type", 4, struct.pack("<I", 15)),
        ("general.license", 8, text("apache-2.0")),
        ("general.languages", 9, struct.pack("<IQ", 8, len(languages)) + b"".join(map(text, languages))),
        ("llama.context_length", 4, struct.pack("<I", 8192)),
        ("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 3) + b"\0" * 12),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs))
    head += b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    head += text("blk.0.weight") + struct.pack("<IQQIQ", 2, 32, 2, 2, 0)
    return head + b"\0" * (-len(head) % 32) + b"\x07" * 36


def whisper_folder(folder: Path, tokens: int = 51_865) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(
        struct.pack("<IH", 6, 12) + b"WhisperSpec\0" + struct.pack("<I", 3) + b"w" * 100
    )
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "vocabulary.txt").write_text("t\n" * tokens)
    (folder / "README.md").write_text("not taken")
    return folder


def voice(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ko_KR-소리-medium.onnx").write_bytes(b"onnx")
    settings = {"audio": {"sample_rate": 22050}, "language": {"code": "ko_KR", "family": "ko"}}
    (folder / "ko_KR-소리-medium.onnx.json").write_text(json.dumps(settings))
    return folder / "ko_KR-소리-medium.onnx"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "저장소 store")


def test_a_gguf_file_becomes_a_model_that_is_listed_and_verifiable(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "나의 모델" / "Tiny Model-Q4_K_M.gguf"
    path.parent.mkdir()
    path.write_bytes(gguf_bytes())
    card = bring(recognise(path), store, set(), Silent())
    assert card.id == "tiny-model-q4_k_m"
    assert (card.stage, card.languages, card.licence) == ("llm", ["ko", "en"], "apache-2.0")
    assert (card.quantization, card.context_length, card.note_ko) == ("Q4_K_M", 8192, "Tiny 모델")
    assert not card.fetchable
    assert store.imported() == [card]
    assert store.path(card).read_bytes() == path.read_bytes()
    assert store.check(card, full=True).state == "whole"
    hashed: list[int] = []
    store.check(card, on_bytes=hashed.append)
    assert hashed == []


def test_a_linked_model_stays_where_it_is_and_is_noticed_when_it_changes(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes())
    card = bring(recognise(path), store, set(), Silent(), link=True)
    assert store.path(card).resolve() == path
    path.write_bytes(gguf_bytes()[:-1] + b"\0")
    assert store.check(card).faults[0].fault == "hash"
    path.unlink()
    assert store.check(card).state == "missing"
    store.remove(card.id)
    assert store.imported() == []


def test_removing_a_linked_model_leaves_the_original(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes())
    card = bring(recognise(path), store, set(), Silent(), link=True)
    store.remove(card.id)
    assert path.read_bytes() == gguf_bytes()


def test_a_whisper_folder_is_taken_without_what_does_not_belong(store: Store, tmp_path: Path) -> None:
    card = bring(recognise(whisper_folder(tmp_path / "whisper base")), store, set(), Silent())
    assert (card.id, card.stage, card.entry, card.languages) == ("whisper-base", "stt", ".", ["en", "ko"])
    assert [file.path for file in card.files] == [
        "model.bin",
        "config.json",
        "tokenizer.json",
        "vocabulary.txt",
    ]
    assert store.path(card) == store.folder("whisper-base")


def test_an_english_whisper_is_told_by_its_vocabulary(tmp_path: Path) -> None:
    assert recognise(whisper_folder(tmp_path / "tiny.en", tokens=51_864)).languages == ["en"]


def test_a_whisper_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "w")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json does not exist"):
        recognise(folder)


def test_another_ctranslate2_model_is_refused(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "w")
    (folder / "model.bin").write_bytes(struct.pack("<IH", 6, 16) + b"TransformerSpec\0" + b"w" * 100)
    with pytest.raises(ModelError, match="not a CTranslate2 Whisper"):
        recognise(folder)


@pytest.mark.parametrize("given", ["ko_KR-소리-medium.onnx", "ko_KR-소리-medium.onnx.json", "."])
def test_a_voice_is_taken_with_its_settings(store: Store, tmp_path: Path, given: str) -> None:
    voice(tmp_path / "voices")
    card = bring(recognise(tmp_path / "voices" / given), store, set(), Silent(), model_id="sori")
    assert (card.stage, card.entry, card.languages) == ("tts", "ko_KR-소리-medium.onnx", ["ko"])
    assert [file.path for file in card.files] == ["ko_KR-소리-medium.onnx", "ko_KR-소리-medium.onnx.json"]


def test_a_voice_without_its_settings_is_refused(tmp_path: Path) -> None:
    path = voice(tmp_path)
    path.with_name(f"{path.name}.json").unlink()
    with pytest.raises(ModelError, match=r"onnx\.json does not exist"):
        recognise(path)


def test_every_piece_of_a_split_model_is_taken(store: Store, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"big-0000{number}-of-00002.gguf").write_bytes(gguf_bytes(name=str(number)))
    card = bring(recognise(tmp_path / "big-00002-of-00002.gguf"), store, set(), Silent())
    assert (card.id, card.entry, len(card.files)) == ("big", "big-00001-of-00002.gguf", 2)
    (tmp_path / "big-00001-of-00002.gguf").unlink()
    with pytest.raises(ModelError, match="00001-of-00002"):
        recognise(tmp_path / "big-00002-of-00002.gguf")


def test_the_least_size_is_that_of_the_last_tensor(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes())
    assert read_header(path).least_size == path.stat().st_size


def test_a_gguf_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gguf_bytes()
    path = tmp_path / "m.gguf"
    for size in (4, 12, 24, 40, 200, 400, len(whole) - 37, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match="not a whole GGUF|cut off") as caught:  # noqa: RUF043
            recognise(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("at", [8, 16, 24])
def test_a_gguf_file_with_absurd_counts_is_refused_at_once(tmp_path: Path, at: int) -> None:
    data = bytearray(gguf_bytes())
    data[at : at + 8] = b"\xff" * 8
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(ModelError, match="not a whole GGUF"):
        recognise(tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "import_pointer"),
        (b"<html>not found</html>", "import_unknown"),
        (b"", "import_unknown"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        recognise(path)
    assert caught.value.code == code


def test_a_folder_with_several_models_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(gguf_bytes())
    with pytest.raises(ModelError, match="several models"):
        recognise(tmp_path)


def test_an_id_that_is_taken_is_refused_and_nothing_is_left_behind(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes())
    with pytest.raises(ModelError, match='"model" exists already'):
        bring(recognise(path), store, {"model"}, Silent())
    bring(recognise(path), store, set(), Silent())
    with pytest.raises(ModelError, match='"model" exists already'):
        bring(recognise(path), store, set(), Silent())
    assert sorted(path.name for path in store.root.iterdir()) == [".lock", "model"]


def test_a_name_in_hangul_falls_back_on_the_name_inside(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "모델.gguf"
    path.write_bytes(gguf_bytes(name="Gaon 2B"))
    assert bring(recognise(path), store, set(), Silent()).id == "gaon-2b"
    path.write_bytes(gguf_bytes(name="모델"))
    with pytest.raises(ModelError, match="No id can be made"):
        bring(recognise(path), store, set(), Silent())


def test_an_id_of_the_wrong_form_is_refused(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes())
    with pytest.raises(ModelError, match="cannot be a model's id"):
        bring(recognise(path), store, set(), Silent(), model_id="../x")


def test_one_card_that_is_broken_hides_no_other(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes())
    good = bring(recognise(path), store, set(), Silent())
    (store.root / "bad").mkdir()
    (store.root / "bad/card.json").write_text("{}")
    told: list[ModelError] = []
    assert store.imported(told.append) == [good]
    assert [error.facts["id"] for error in told] == ["bad"]
