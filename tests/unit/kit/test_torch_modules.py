from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ondam_engines.kit.cancel import Cancel, Cancelled
from ondam_engines.kit.torch_modules import LayerStop, dtype_name, placement, weights_file


@dataclass
class Weight:
    size: int
    device: str = "cpu"
    dtype: str = "torch.float32"

    def numel(self) -> int:
        return self.size


@dataclass(eq=False)
class Module:
    weights: list[Weight] = field(default_factory=list)
    below: list[object] = field(default_factory=list)
    hooks: list[Callable[..., None]] = field(default_factory=list)

    def parameters(self) -> Iterable[Weight]:
        return self.weights

    def modules(self) -> Iterable[object]:
        return [self, *self.below]

    def register_forward_pre_hook(self, hook: Callable[..., None]) -> None:
        self.hooks.append(hook)


class ModuleList(list[Module]):
    pass


def test_a_type_is_one_that_a_model_can_be_loaded_in() -> None:
    assert [dtype_name(name) for name in ("auto", "bfloat16")] == ["auto", "bfloat16"]
    with pytest.raises(ValueError, match="int8"):
        dtype_name("int8")


def test_a_model_on_one_device_says_so() -> None:
    got = placement({"encoder": Module([Weight(5)]), "head": Module([Weight(1)])})
    assert (got.device, got.dtype, got.quantization) == ("cpu", "float32", "f32")
    assert got.providers == {"encoder": ["cpu"], "head": ["cpu"]}


def test_a_model_that_was_split_does_not_look_whole() -> None:
    split = Module([Weight(9, "cuda:0", "torch.bfloat16"), Weight(1)])
    got = placement({"decoder": split, "head": Module([Weight(3)])})
    assert (got.device, got.dtype) == ("cuda:0+cpu", "bfloat16+float32")
    assert got.quantization == "bf16"
    assert got.providers == {"decoder": ["cuda:0", "cpu"], "head": ["cpu"]}


def test_a_cancelled_job_ends_before_the_next_layer_and_the_next_job_does_not() -> None:
    layer, other = Module(), Module()
    shared = ModuleList([layer])
    stop = LayerStop([Module(below=[shared]), Module(below=[shared, ModuleList([other])])])
    assert (len(layer.hooks), len(other.hooks)) == (1, 1)
    layer.hooks[0](layer, ())
    stop.cancel.cancel()
    with pytest.raises(Cancelled):
        layer.hooks[0](layer, ())
    stop.cancel = Cancel()
    layer.hooks[0](layer, ())


def test_the_weights_are_the_largest_file_of_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        weights_file(tmp_path)
    for name, size in (("model-1.safetensors", 9), ("model-2.safetensors", 5), ("other.bin", 99)):
        (tmp_path / name).write_bytes(b"0" * size)
    assert weights_file(tmp_path).name == "model-1.safetensors"
