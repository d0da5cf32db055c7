"""The header of a GGUF file: what the model is called, and whether the file is as long as its tensors need.

Format: github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3. Why not the ``gguf`` package: see
docs/decisions/gguf-header.md.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ondam.errors import ModelError

MAGIC = b"GGUF"
ALIGNMENT = 32
"""Bytes; ``general.alignment`` replaces it."""

LONGEST_STRING = 64 << 20
"""Bytes. A chat template is under 100 kB; a broken length would otherwise ask for the whole memory."""

MOST_ITEMS = 1 << 32
"""In an array; the largest vocabularies have about 2**18 tokens."""

_SCALARS: Final = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9

_QUANTIZATIONS: Final = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
    19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
    26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0",
    37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0",
}  # fmt: skip
"""``general.file_type`` (``LLAMA_FTYPE`` in llama.h, read from gguf 0.19)."""

_BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}  # fmt: skip
"""Tensor type → weights in a block, bytes of a block (``GGML_QUANT_SIZES``, read from gguf 0.19)."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is read. Empty or None where the file does not say."""

    name: str
    architecture: str
    quantization: str
    context_length: int | None
    licence: str
    languages: tuple[str, ...]
    least_size: int
    """Bytes that the file must have for its last tensor to be whole."""


def read_header(path: Path) -> Header:
    """The header of ``path``. Raises ModelError when it is no GGUF file, is broken, or is cut off."""
    try:
        with path.open("rb") as file:
            header = _read(file)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ModelError("import_unreadable", path=path, reason=error.strerror or error) from error
    except (_Broken, struct.error, UnicodeDecodeError) as error:
        raise ModelError("gguf_broken", path=path, reason=error) from error
    if size < header.least_size:
        raise ModelError("gguf_cut_off", path=path, expected=header.least_size, found=size)
    return header


class _Broken(Exception):
    pass


def _read(file: BinaryIO) -> Header:
    if file.read(4) != MAGIC:
        raise _Broken("it does not begin with GGUF")
    version, tensors, pairs = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in (2, 3):
        raise _Broken(f"version {version}")
    values: dict[str, object] = {}
    for _ in range(pairs):
        key = _string(file)
        values[key] = _value(file, *struct.unpack("<I", _exactly(file, 4)))
    ends = [_tensor_end(file) for _ in range(tensors)]
    alignment = values.get("general.alignment", ALIGNMENT)
    step = alignment if isinstance(alignment, int) and alignment > 0 else ALIGNMENT
    begin = -(-file.tell() // step) * step
    architecture = str(values.get("general.architecture", ""))
    context = values.get(f"{architecture}.context_length")
    file_type = values.get("general.file_type")
    languages = values.get("general.languages")
    return Header(
        name=str(values.get("general.name", "")),
        architecture=architecture,
        quantization=_QUANTIZATIONS.get(file_type, "") if isinstance(file_type, int) else "",
        context_length=context if isinstance(context, int) else None,
        licence=str(values.get("general.license", "")),
        languages=tuple(map(str, languages)) if isinstance(languages, list) else (),
        least_size=begin + max(ends, default=0),
    )


def _tensor_end(file: BinaryIO) -> int:
    """Where a tensor ends, counted from the first one's begin; where it begins if its type is not known."""
    _string(file)
    (dimensions,) = struct.unpack("<I", _exactly(file, 4))
    if dimensions > 8:
        raise _Broken(f"a tensor of {dimensions} dimensions")
    *shape, kind, offset = struct.unpack(f"<{dimensions}QIQ", _exactly(file, 8 * dimensions + 12))
    weights = 1
    for length in shape:
        weights *= length
    per_block, block_bytes = _BLOCKS.get(kind, (1, 0))
    return int(offset + weights // per_block * block_bytes)


def _value(file: BinaryIO, kind: int) -> object:
    if kind in _SCALARS:
        form = _SCALARS[kind]
        return struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        raise _Broken(f"a value of type {kind}")
    inner, count = struct.unpack("<IQ", _exactly(file, 12))
    if count > MOST_ITEMS:
        raise _Broken(f"an array of {count} items")
    if inner in _SCALARS:
        # Token scores and types: large, and nobody asks for them.
        file.seek(count * struct.calcsize(_SCALARS[inner]), os.SEEK_CUR)
        return None
    if inner != _STRING:
        raise _Broken(f"an array of type {inner}")
    return [_string(file) for _ in range(count)]


def _string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > LONGEST_STRING:
        raise _Broken(f"a text of {length} bytes")
    return _exactly(file, length).decode("utf-8", "replace")


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _Broken("it ends inside its header")
    return data
