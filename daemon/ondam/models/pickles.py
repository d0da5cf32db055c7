"""Finds weights that are a program: pickles run whatever they hold when they are loaded, and are refused.

By what a file is, not by what it is called: PyTorch's zip archives and their older form, bare pickles,
numpy's arrays of objects. Names that stand for nothing else are refused unseen. The safe forms hold numbers
alone: safetensors, GGUF, ONNX, CTranslate2's ``model.bin``, numpy's arrays of numbers.
"""

from __future__ import annotations

import pickletools  # reads opcodes, runs none
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ondam.errors import ModelError

NAMES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill")
"""Endings of pickles, and of nothing else that an engine loads."""

WEIGHTS = (*NAMES, ".bin", ".npz", ".npy", ".zip", ".model", ".tar", "")
"""Endings of files that are looked into: those that an engine might unpickle."""

ZIP = b"PK\x03\x04"
NUMPY = b"\x93NUMPY"
PROTOCOL = b"\x80"
"""Begins every pickle since protocol 2 (PEP 307); the number follows: 5 is the newest (PEP 574)."""

OPCODES = frozenset(opcode.code for opcode in pickletools.opcodes)
"""One of them follows."""

LONGEST_HEADER = 65_536
"""Bytes. Of numpy's header: a description of the array in ASCII."""


def refuse_pickles(path: Path) -> None:
    """Raises ModelError naming the file where ``path``, or a file of the folder ``path``, is a pickle.

    Reads a few bytes of each; what cannot be read is left to whoever loads it.
    """
    for file in _files(path):
        if is_pickle(file):
            raise ModelError("model_pickled", path=file)


def is_pickle(path: Path) -> bool:
    """Whether loading ``path`` as what it is would run a program that it may hold."""
    if path.suffix.lower() in NAMES:
        return True
    if path.suffix.lower() not in WEIGHTS:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(16)
            if head.startswith(NUMPY):
                return _of_objects(head + file.read(LONGEST_HEADER))
        if head.startswith(ZIP):
            return _holds_one(path)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return _begins_as_one(head)


def named_as_pickle(name: str) -> bool:
    """Whether a file of that name, which is not here yet, is one."""
    plain = name.lower().rsplit("/", 1)[-1]
    return plain.endswith(NAMES) or (plain.startswith("pytorch_model") and plain.endswith(".bin"))


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
    elif path.is_file():
        yield path


def _begins_as_one(head: bytes) -> bool:
    # Protocol 2 and later; PyTorch before 1.6 begins with one that holds its magic number.
    if len(head) < 3 or head[:1] != PROTOCOL or not 2 <= head[1] <= 5:
        return False
    return chr(head[2]) in OPCODES


def _holds_one(path: Path) -> bool:
    """PyTorch's archive (``NAME/data.pkl``), or numpy's with an array of objects in it."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".pkl"):
                return True
            with archive.open(name) as member:
                head = member.read(16)
                if head.startswith(NUMPY) and _of_objects(head + member.read(LONGEST_HEADER)):
                    return True
                if _begins_as_one(head) and name.endswith((".npy", "/data", "data")):
                    return True
    return False


def _of_objects(head: bytes) -> bool:
    """Numpy's format 1 to 3 (numpy.lib.format): magic, version, length of the header, the header."""
    wide = head[6] >= 2
    length = int.from_bytes(head[8 : 12 if wide else 10], "little")
    begin = 12 if wide else 10
    header = head[begin : begin + min(length, LONGEST_HEADER)]
    # "|O" is an object; a structure may hold one.
    return b"'O'" in header or b"|O" in header
