"""Weights that would run a program when they are loaded are refused, whatever they are called."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.registry_server import sha256
from tests.unit.models.test_importing import gguf_bytes, whisper_folder

from ondam.errors import ModelError
from ondam.models.card import ModelCard, ModelFile
from ondam.models.hub import without_pickles
from ondam.models.importing import recognise
from ondam.models.pickles import is_pickle, refuse_pickles
from ondam.models.store import Store


def saved(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # none of them is called allow_pickle
    return file.getvalue()


def array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def torch_archive(name: str = "archive/data.pkl", protocol: int | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/version", b"V3")  # begins as a pickle's text, and is none
        archive.writestr(name, pickle.dumps({"w": 1}, protocol))
        archive.writestr("archive/data/0", b"\0" * 16)
    return file.getvalue()


OBJECTS = np.array([{"a": 1}, None], dtype=object)
STRUCTURE = np.array([(1, None)], dtype=[("n", "i4"), ("what", "O")])
LEGACY = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2)

STATE = {"layer.weight": [0.25, 1.0, -3.0], "steps": 7, "name": "가", "shape": (2, 3)}
CALL = b"cos\nsystem\n(S'true'\ntR."
PADDED = b"V" + b"x" * 70_000 + b"\n0X" + (5000).to_bytes(4, "little") + b"y" * 5000 + b"0" + CALL

PICKLES = {
    **{f"protocol{n}.bin": pickle.dumps(STATE, protocol=n) for n in range(6)},
    **{f"many{n}.model": pickle.dumps([float(k) for k in range(2000)], protocol=n) for n in range(6)},
    **{f"unlisted{n}.data": pickle.dumps(Path("x"), protocol=n) for n in range(6)},
    "call.onnx_data": CALL,
    "padded.weights": PADDED,
    "inst.bin": b"(S'true'\nios\nsystem\n.",
    "headless.bin": pickle.dumps(Path("x"), protocol=4)[2:],
    "none": b"N.",
    "second.bin": b"N." + CALL,
    "in_a_zip.ptx": torch_archive("archive/weights", protocol=0),
    "weights.pt": b"anything",
    "weights.PTH": b"anything",
    "model.ckpt": b"anything",
    "vectors.pkl": b"anything",
    "model.joblib": b"anything",
    "pytorch_model.bin": torch_archive(),
    "model.bin": LEGACY,
    "no_ending": pickle.dumps([1, 2], protocol=5),
    "objects.npz": saved(fine=np.zeros(3), bad=OBJECTS),
    "objects.npy": array(OBJECTS),
    "structure.npy": array(STRUCTURE),
    "renamed.zip": torch_archive("x/data.pkl"),
}

FINE = {
    "model.safetensors": b"\x80\x04\x95" + b"\0" * 20,  # its length happens to begin so
    "model.gguf": gguf_bytes(),
    "model.onnx": b"\x80\x04\x95onnx",
    "model.bin": b"\x06\0\0\0\x0c\0WhisperSpec\0",
    "numbers.npz": saved(one=np.zeros(3), two=np.ones((2, 2), np.float32)),
    "numbers.npy": array(np.arange(9)),
    "text.bin": b"hello",
    "empty.bin": b"",
    "half.zip": b"PK\x03\x04 no archive",
    "byte.bin": b"\x80",
    "number.bin": b"\x80\x09\x95" + b"\0" * 8,
    "vocab.json": b"{}",
    "stop": b".",
    "call.txt": CALL,
    "LICENSE": b"Copyright (c) 2026\n\nPermission is hereby granted, free of charge\n",
    "copyright": b"Files: *\nCopyright: 2026\n",
    "bytes.rst": b"C\x04abcd. And so on.\n",
    "TERMS": b"Terms and conditions\n" * 99,
    "classes": b"cat\ndog\nelk\n",
    "Version": b"Version 2\n1. Definitions\n",
    "weights.data": np.linspace(-1, 1, 5000, dtype=np.float32).tobytes(),
    "zeros.bin": b"\0" * 5000,
    "cut.bin": pickle.dumps(list(range(99)), protocol=0)[:-1],
    "endless.bin": b"\x8d" + b"\xff" * 8,
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_is_known_by_what_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PICKLES[name])
    assert is_pickle(path)
    for place in (path, tmp_path):
        with pytest.raises(ModelError) as caught:
            refuse_pickles(place)
        assert (caught.value.code, caught.value.facts["path"]) == ("model_pickled", path)


@pytest.mark.parametrize("name", FINE)
def test_numbers_alone_are_no_pickle(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FINE[name])
    refuse_pickles(tmp_path / name)
    refuse_pickles(tmp_path)


def test_nothing_of_a_pickle_is_run_by_looking(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "ran",))  # type: ignore[return-value]  # any callable will do

    for name in ("trap.bin", "trap"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        assert is_pickle(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_what_is_not_there_is_left_to_whoever_misses_it(tmp_path: Path) -> None:
    refuse_pickles(tmp_path / "nowhere")


def test_import_refuses_a_pickle_and_a_folder_that_holds_one(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(torch_archive())
    folder = whisper_folder(tmp_path / "whisper")
    (folder / "extra").mkdir()
    (folder / "extra" / "optimizer.bin").write_bytes(torch_archive())
    for path, named in (
        (tmp_path / "model.pt", tmp_path / "model.pt"),
        (folder, folder / "extra" / "optimizer.bin"),
    ):
        with pytest.raises(ModelError) as caught:
            recognise(path)
        assert caught.value.facts["path"] == named
        assert caught.value.exit_code == 5


def test_a_whole_model_that_is_a_pickle_is_given_to_no_engine(tmp_path: Path) -> None:
    store, data = Store(tmp_path), torch_archive()
    file = ModelFile(path="model.bin", size=len(data), sha256=sha256(data))
    card = ModelCard(id="m", stage="stt", languages=["en"], licence="MIT", entry=".", files=[file])
    store.folder("m").mkdir()
    (store.folder("m") / "model.bin").write_bytes(data)
    assert store.check(card).state == "whole"
    with pytest.raises(ModelError) as caught:
        store.path(card)
    assert caught.value.code == "model_pickled"


def card(*files: str) -> ModelCard:
    return ModelCard(
        id="m", stage="stt", languages=["en"], licence="MIT", repository="o/m", repository_files=list(files)
    )


def test_of_a_hubs_repository_pickles_are_left_behind_where_there_is_something_else() -> None:
    names = ["model.safetensors", "vocoder.pth", "pytorch_model-1-of-2.bin", "config.json"]
    assert without_pickles(card(), names) == {"model.safetensors", "config.json"}
    assert without_pickles(card(), ["model.bin", "config.json"]) == {"model.bin", "config.json"}


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ((), ["pytorch_model.bin", "config.json"]),
        ((), ["sub/model.ckpt"]),
        (("vocoder.pth",), ["vocoder.pth"]),
    ],
)
def test_a_repository_with_nothing_else_is_refused_with_their_names(
    asked: list[str], names: list[str]
) -> None:
    with pytest.raises(ModelError) as caught:
        without_pickles(card(*asked), names)
    assert caught.value.code == "hub_only_pickles"
    assert names[0] in str(caught.value)
