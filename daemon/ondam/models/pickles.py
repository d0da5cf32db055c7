"""Finds weights that are a program: pickles run whatever they hold when they are loaded, and are refused.

By what a file is, not by what it is called: PyTorch's zip archives and their older form, bare pickles,
numpy's arrays of objects. Names that stand for nothing else are refused unseen. The safe forms hold numbers
alone: safetensors, GGUF, ONNX, CTranslate2's ``model.bin``, numpy's arrays of numbers.
"""

from __future__ import annotations

import pickletools  # reads opcodes, runs none
import zipfile
import zlib
from collections.abc import Iterator
from io import SEEK_CUR, SEEK_END, BytesIO
from pathlib import Path
from typing import IO

from ondam.errors import ModelError

NAMES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill")
"""Endings of pickles, and of nothing else that an engine loads."""

HARMLESS = (".safetensors", ".gguf", ".onnx", ".json", ".jsonl", ".txt", ".md", ".yaml", ".yml", ".toml")
"""Endings of files that are not looked into: nobody unpickles them, and a text may begin as a pickle does."""

ZIP = b"PK\x03\x04"
NUMPY = b"\x93NUMPY"
PROTOCOL = b"\x80"
"""Begins every pickle since protocol 2 (PEP 307); the number follows: 5 is the newest (PEP 574)."""

OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}
"""One of them follows."""

WIDTHS = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
"""Bytes, little-endian, that say how long what follows an opcode is."""

CALLS = frozenset({"REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"})
"""Opcodes that call what a pickle named."""

MOST_OPCODES = 500
"""So many in a row that fit each other are no accident."""

PIECE = 65_536
"""Bytes of a line that are held at once."""

LONGEST_HEADER = 65_536
"""Bytes. Of numpy's header: a description of the array in ASCII."""


def refuse_pickles(path: Path) -> None:
    """Raises ModelError naming the file where ``path``, or a file of the folder ``path``, is a pickle.

    Reads a few bytes of each, or skips through it; what cannot be read is left to whoever loads it.
    """
    for file in _files(path):
        if is_pickle(file):
            raise ModelError("model_pickled", path=file)


def is_pickle(path: Path) -> bool:
    """Whether loading ``path`` as what it is would run a program that it may hold."""
    if path.suffix.lower() in NAMES:
        return True
    if path.suffix.lower() in HARMLESS:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(16)
            if head.startswith(NUMPY):
                return _of_objects(head + file.read(LONGEST_HEADER))
            if not head.startswith(ZIP):
                return _is_one(head, file)
        return _holds_one(path)
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError):
        return False


def named_as_pickle(name: str) -> bool:
    """Whether a file of that name, which is not here yet, is one."""
    plain = name.lower().rsplit("/", 1)[-1]
    return plain.endswith(NAMES) or (plain.startswith("pytorch_model") and plain.endswith(".bin"))


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
    elif path.is_file():
        yield path


def _is_one(head: bytes, file: IO[bytes]) -> bool:
    """Whether ``file``, which begins with ``head``, is a pickle. Raises OSError."""
    # Protocol 2 and later say so; PyTorch before 1.6 begins with one that holds its magic number.
    if len(head) >= 3 and head[:1] == PROTOCOL and 2 <= head[1] <= 5 and chr(head[2]) in OPCODES:
        return True
    try:
        return _runs(file)
    except (ValueError, OverflowError):
        return False


def _runs(file: IO[bytes]) -> bool:
    """Whether an unpickler would come to a call, or to the end, in what has no header (protocols 0 and 1).

    Follows the opcodes, and what each of them needs on the stack; skips what they hold. Raises OSError, and
    ValueError where it is none.
    """
    size = file.seek(0, SEEK_END)
    file.seek(0)
    stack: list[pickletools.StackObject] = []
    for _ in range(MOST_OPCODES):
        opcode = OPCODES.get(file.read(1).decode("latin-1"))
        if opcode is None:
            return False
        _skip(opcode, file)
        if file.tell() > size or not _fits(opcode, stack):
            return False
        if opcode.name in CALLS:
            return True
        if opcode.name == "STOP":
            if file.tell() == size:
                return True
            stack.clear()  # another may follow
    return True


def _skip(opcode: pickletools.OpcodeInfo, file: IO[bytes]) -> None:
    """Go past what follows an opcode. Raises ValueError where that is something else."""
    if opcode.arg is None:
        return
    length = opcode.arg.n
    if length == pickletools.UP_TO_NEWLINE:
        lines = [_line(file) for _ in range(2 if opcode.name in {"GLOBAL", "INST"} else 1)]
        if all(line.endswith(b"\n") for line in lines):
            opcode.arg.reader(BytesIO(b"".join(lines)))
        return
    if length < 0:
        length = int.from_bytes(file.read(WIDTHS[length]), "little")
    file.seek(length, SEEK_CUR)


def _line(file: IO[bytes]) -> bytes:
    """The next line, or the beginning of one that is very long. Raises ValueError where none ends."""
    begin = piece = file.readline(PIECE)
    while not piece.endswith(b"\n"):
        if not piece:
            raise ValueError("no end of a line")
        piece = file.readline(PIECE)
    return begin


def _fits(opcode: pickletools.OpcodeInfo, stack: list[pickletools.StackObject]) -> bool:
    """Do to the stack what the opcode does, as ``pickletools.dis``; False where it lacks something."""
    mark, needs = pickletools.markobject, list(opcode.stack_before)
    if mark in needs or (opcode.name == "POP" and stack[-1:] == [mark]):
        if mark not in stack:
            return False
        while stack.pop() is not mark:
            pass
        needs = needs[: needs.index(mark)] if mark in needs else []
    if len(stack) < len(needs):
        return False
    del stack[len(stack) - len(needs) :]
    stack.extend(opcode.stack_after)
    return True


def _holds_one(path: Path) -> bool:
    """PyTorch's archive (``NAME/data.pkl``), or numpy's with an array of objects in it."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any(name.endswith(".pkl") for name in names):
            return True
        for name in names:
            if name.lower().endswith(HARMLESS):
                continue
            with archive.open(name) as member:
                head = member.read(16)
                if head.startswith(NUMPY) and _of_objects(head + member.read(LONGEST_HEADER)):
                    return True
                if _is_one(head, BytesIO(head + member.read(LONGEST_HEADER))):
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
