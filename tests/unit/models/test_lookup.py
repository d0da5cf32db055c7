"""What is seen of weights that the user names by where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondam.models.catalog import Catalog
from ondam.models.lookup import WholeModels
from ondam.models.store import Store


@pytest.mark.parametrize(
    ("named", "seen"),
    [
        ("one.gguf", {"one.gguf": 1}),
        # Whoever is given the first part loads all.
        ("big-00001-of-00002.gguf", {"big-00001-of-00002.gguf": 4, "big-00002-of-00002.gguf": 5}),
        # The same weights lie beside it in another form.
        ("checkpoint", {"model.safetensors": 7, "codec/model.safetensors": 8}),
        ("whisper", {"model.bin": 9}),
        ("nothing", {}),
        ("not/there.gguf", {}),
    ],
)
def test_weights_are_files_of_one_form_with_their_sizes(
    tmp_path: Path, named: str, seen: dict[str, int]
) -> None:
    sizes = {
        "one.gguf": 1,
        "big-00001-of-00002.gguf": 4,
        "big-00002-of-00002.gguf": 5,
        "checkpoint/model.safetensors": 7,
        "checkpoint/codec/model.safetensors": 8,
        "checkpoint/pytorch_model.bin": 7,
        "whisper/model.bin": 9,
        "nothing/readme.md": 3,
    }
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    store = Store(tmp_path / "store")
    assert WholeModels(Catalog.union({}, []), store).weights(tmp_path / named) == seen
