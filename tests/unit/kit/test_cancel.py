from __future__ import annotations

import pytest

from ondam_engines.kit.cancel import Cancel, Cancelled


def test_check_raises_only_after_cancelling() -> None:
    cancel = Cancel()
    cancel.check()
    cancel.cancel()
    assert cancel.cancelled
    with pytest.raises(Cancelled):
        cancel.check()


def test_what_is_registered_is_called_once() -> None:
    cancel, calls = Cancel(), []
    with cancel.calling(lambda: calls.append(1)):
        cancel.cancel()
        cancel.cancel()
    assert calls == [1]


def test_what_registers_late_is_called_at_once() -> None:
    cancel, calls = Cancel(), []
    cancel.cancel()
    with cancel.calling(lambda: calls.append(1)):
        assert calls == [1]


def test_what_has_ended_is_not_called() -> None:
    cancel, calls = Cancel(), []
    with cancel.calling(lambda: calls.append(1)):
        pass
    cancel.cancel()
    assert calls == []
