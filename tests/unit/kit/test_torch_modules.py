from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ondam_engines.kit.cancel import Cancel, Cancelled
from ondam_engines.kit.launch import Launch
from ondam_engines.kit.torch_modules import LayerStop, dtype_name, eager_report, placement, weights_file


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


def launch(model: Path | None) -> Launch:
    return Launch(Path("/s"), Path("/r"), model, "toy", "cuda:0", 2, "ko", {})


def test_the_report_says_what_was_got_and_not_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    parts = {"decoder": Module([Weight(9)])}
    told = eager_report("toy", launch(tmp_path), parts, threads=2, loads=1, packages=["pytest", "none-such"])
    assert (told.device, told.dtype, told.quantization, told.kv_dtype) == ("cpu", "float32", "f32", "f32")
    assert (told.cuda_graphs, told.graph_mode, told.gpu_memory_mib) == (None, None, None)
    assert (told.threads, told.weight_loads, told.context_length) == (2, 1, None)
    # SHA-256 of "abc": FIPS 180-2, appendix B.1.
    assert told.model is not None and told.model.sha256.startswith("ba7816bf8f01cfea")
    assert set(told.versions) == {"pytest"}


def test_on_a_card_there_are_no_graphs_and_its_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    monkeypatch.setattr("ondam_engines.kit.report.gpu_mib", lambda: 700)
    parts = {"decoder": Module([Weight(9, "cuda:0", "torch.bfloat16")])}
    told = eager_report("toy", launch(tmp_path), parts, threads=2, loads=1, packages=[], context_length=4096)
    assert (told.cuda_graphs, told.graph_mode, told.gpu_memory_mib) == (False, "eager", 700)
    assert (told.device, told.kv_dtype, told.context_length) == ("cuda:0", "bf16", 4096)
    with pytest.raises(FileNotFoundError):
        eager_report("toy", launch(None), parts, threads=2, loads=1, packages=[])


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
