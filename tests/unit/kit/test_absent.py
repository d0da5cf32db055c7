from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import pytest

from ondam_engines.kit.absent import absent

NAME = "ondam_test_nowhere"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]


def test_what_is_absent_can_be_imported_and_not_used() -> None:
    absent(f"{NAME}.inner.deep")
    deep = importlib.import_module(f"{NAME}.inner.deep")
    assert sys.modules[NAME].inner.deep is deep
    with pytest.raises(ImportError, match=rf"{NAME}\.inner\.deep\.mel: .* not part of this environment"):
        deep.mel(sr=16_000)


def test_a_library_that_asks_whether_it_is_there_gets_an_answer() -> None:
    absent(NAME)
    assert importlib.util.find_spec(NAME) is not None
    assert not hasattr(sys.modules[NAME], "__version__")


def test_what_is_imported_already_stays() -> None:
    absent("json")
    import json

    assert json.loads("1") == 1
