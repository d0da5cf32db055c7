"""Whether a browser is opened."""

from __future__ import annotations

import pytest

from ondam.cli.panel import has_display


@pytest.mark.parametrize(
    ("environ", "platform", "shown"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "darwin", False),
    ],
)
def test_a_browser_is_for_who_has_a_display(environ: dict[str, str], platform: str, shown: bool) -> None:
    assert has_display(environ, platform) is shown
