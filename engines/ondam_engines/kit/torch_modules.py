"""What the engines that compute with PyTorch share. Does not import it: a model brings its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ondam_engines.kit import report
from ondam_engines.kit.cancel import Cancel
from ondam_engines.kit.launch import Launch

DTYPES = ("float32", "float16", "bfloat16")

SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
"""As models' cards name what their weights are kept in."""


class Module(Protocol):
    """``torch.nn.Module``, as far as it is looked at here."""

    def parameters(self) -> Iterable[Any]:
        """Tensors with ``device`` and ``dtype``."""

    def modules(self) -> Iterable[Any]:
        """Itself and everything below it."""


def dtype_name(wanted: str) -> str:
    """The type to compute in, for ``from_pretrained``: ``auto`` is what the weights are stored in.

    Raises ValueError for a type that is none.
    """
    if wanted not in {"auto", *DTYPES}:
        raise ValueError(f"dtype must be auto or one of {', '.join(DTYPES)}, not {wanted!r}")
    return wanted


class LayerStop:
    """Lets a cancelled job end before the next layer: within a prefill too, not only between two tokens."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Watches every member of every list of layers in ``modules``."""
        self.cancel = Cancel()
        for layer in _layers(modules):
            layer.register_forward_pre_hook(self._check)

    def _check(self, *_: object) -> None:
        self.cancel.check()


def _layers(modules: Iterable[Module]) -> Iterator[Any]:
    seen: set[int] = set()
    for module in modules:
        for inner in module.modules():
            if type(inner).__name__ == "ModuleList":
                for layer in inner:
                    if id(layer) not in seen:
                        seen.add(id(layer))
                        yield layer


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the parts of a model really are."""

    providers: dict[str, list[str]]
    """Part to the devices that hold its weights, the one with the most first."""
    device: str
    """``cpu`` or ``cuda:0`` where all are on one; else all of them, with ``+`` between."""
    dtype: str
    """Likewise."""

    @property
    def quantization(self) -> str | None:
        """Of most of the weights, as models' cards name it."""
        return SHORT.get(self.dtype.split("+")[0])


def placement(parts: Mapping[str, Module]) -> Placement:
    """Looks at every weight of ``parts``; what was asked for does not count."""
    providers = {}
    devices: dict[str, int] = {}
    dtypes: dict[str, int] = {}
    for part, module in parts.items():
        held: dict[str, int] = {}
        for weight in module.parameters():
            for sizes, name in ((held, weight.device), (dtypes, weight.dtype)):
                key = str(name).removeprefix("torch.")
                sizes[key] = sizes.get(key, 0) + weight.numel()
        providers[part] = _most_first(held)
        for device, size in held.items():
            devices[device] = devices.get(device, 0) + size
    return Placement(providers, "+".join(_most_first(devices)), "+".join(_most_first(dtypes)))


def _most_first(sizes: dict[str, int]) -> list[str]:
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def eager_report(
    engine: str,
    launch: Launch,
    parts: Mapping[str, Module],
    *,
    threads: int,
    loads: int,
    packages: Iterable[str],
    context_length: int | None = None,
) -> report.Report:
    """What an engine got whose package runs PyTorch eagerly; its cache is of the weights' type.

    ``threads``: PyTorch's own; ``loads``: how often weights were loaded. Raises FileNotFoundError without
    any.
    """
    if launch.model is None:
        raise FileNotFoundError(f"{engine} has no model")
    weights = weights_file(launch.model)
    got = placement(parts)
    on_card = got.device != "cpu"
    return report.Report(
        engine=engine,
        device=got.device,
        threads=threads,
        model=report.Weights(launch.model_id, str(weights), report.sha256(weights)),
        weight_loads=loads,
        dtype=got.dtype,
        quantization=got.quantization,
        providers=got.providers,
        cuda_graphs=False if on_card else None,
        graph_mode="eager" if on_card else None,
        context_length=context_length,
        kv_dtype=got.quantization,
        gpu_memory_mib=report.gpu_mib() if on_card else None,
        versions=report.versions(packages),
    )


def weights_file(folder: Path) -> Path:
    """The largest file of weights in ``folder``. Raises FileNotFoundError where there is none."""
    files = sorted(folder.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    if not files:
        raise FileNotFoundError(f"no *.safetensors in {folder}")
    return files[-1]
