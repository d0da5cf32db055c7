from __future__ import annotations

from typing import Any

from ondam.models.card import ModelCard
from ondam.planner.weights import weights_sha256


def card(entry: str, *files: tuple[str, int, str]) -> ModelCard:
    part = {"package": "p", "version": "1", "sha256": "a" * 64, "member": "m"}
    found: list[dict[str, Any]] = [
        {"path": path, "size": size, "sha256": digit * 64, "parts": [part]} for path, size, digit in files
    ]
    return ModelCard.model_validate(
        {"id": "x", "stage": "stt", "languages": [], "licence": "MIT", "entry": entry, "files": found}
    )


def test_the_entry_is_the_weights_file() -> None:
    assert weights_sha256(card("a.onnx", ("a.onnx", 1, "1"), ("big", 9, "2"))) == "1" * 64


def test_in_a_folder_the_largest_file_is() -> None:
    assert weights_sha256(card(".", ("config.json", 1, "1"), ("model.bin", 9, "2"))) == "2" * 64
