"""Modules that a package imports at its top and needs for nothing that we do with it."""

from __future__ import annotations

import socket
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn


class Absent(ModuleType):
    """Stands where a module would be. Imports as one; whoever uses it is told that it is not there."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            # inspect and importlib look for these on every module; a module need not have them.
            raise AttributeError(name)

        def use(*_: object, **__: object) -> NoReturn:
            raise ImportError(f"{self.__name__}.{name}: {self.__name__} is not part of this environment")

        return use


def no_internet() -> None:
    """Let urllib3, which Transformers imports, take IPv6 for absent.

    It would make a socket and bind it to see, and an engine makes none: whoever proves that nothing goes out
    is to find nothing. Call it before the package that imports them.
    """
    socket.has_ipv6 = False


def absent(*names: str) -> None:
    """Let ``import name`` succeed for each of ``names`` that is not imported, and for its parents.

    Call it before the package that imports them. What is really installed under such a name is not found any
    more in this process.
    """
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            whole = ".".join(parts[:count])
            if whole not in sys.modules:
                module = Absent(whole, "Placed by ondam_engines.kit.absent.")
                # Libraries ask find_spec whether a module is there, and it fails on one without a spec.
                module.__spec__ = ModuleSpec(whole, None, is_package=True)
                module.__path__ = []
                sys.modules[whole] = module
                if count > 1:
                    setattr(sys.modules[".".join(parts[: count - 1])], parts[count - 1], module)
