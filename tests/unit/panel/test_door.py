"""Who may come in, decided without a socket."""

from __future__ import annotations

import pytest

from ondam_ui.panel.door import Door, our_host, our_page


def test_every_start_has_secrets_of_its_own() -> None:
    one, other = Door(), Door()
    assert len({one.path, other.path, one.token, other.token, one.session, other.session}) == 6
    assert one.address(80) == f"http://127.0.0.1:80{one.path}#token={one.token}"
    assert one.session not in one.address(80)


def test_only_the_token_opens_and_only_the_cookie_is_known() -> None:
    door = Door(token="abc", session="xyz")
    assert door.opens("abc")
    for wrong in ("", "ab", "abcd", "ABC", "ä", "\udc80", None, 7, "xyz"):
        assert not door.opens(wrong), wrong
    assert door.knows("xyz")
    assert not door.knows("abc") and not door.knows(None) and not door.knows("")


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:8765", "127.0.0.1", "localhost"])
def test_this_machine_has_two_names(host: str) -> None:
    assert our_host(host)


@pytest.mark.parametrize(
    "host",
    ["", ":80", "evil.example", "evil.example:80", "127.0.0.1.evil.example:80", "localhost.:80",
     "127.0.0.1:8a", "127.0.0.2:80", "0.0.0.0:80", "[::1]:80", "127.0.0.1:80:80",
     "evil@127.0.0.1:80", "127.0.0.1:８０"],
)  # fmt: skip
def test_no_other_name_is_this_machines(host: str) -> None:
    assert not our_host(host)


def test_a_page_of_ours_may_read_and_change() -> None:
    headers = {"Host": "127.0.0.1:80", "Origin": "http://127.0.0.1:80"}
    assert our_page(headers, changes=True) and our_page(headers, changes=False)
    assert our_page({"Host": "127.0.0.1:80", "Sec-Fetch-Site": "same-origin"}, changes=False)


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:81", "http://localhost:80", "https://127.0.0.1:80", "null", "http://evil.example", ""],
)
def test_no_other_page_may(origin: str) -> None:
    headers = {"Host": "127.0.0.1:80", "Origin": origin}
    assert not our_page(headers, changes=False)
    assert not our_page(headers, changes=True)


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_without_an_origin_the_browsers_other_word_counts_and_nothing_is_changed(site: str) -> None:
    assert not our_page({"Host": "127.0.0.1:80", "Sec-Fetch-Site": site}, changes=False)
    assert not our_page({"Host": "127.0.0.1:80"}, changes=True)
