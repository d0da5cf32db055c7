from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ondam.airgap.attempts import Attempt
from ondam.airgap.files import Opened
from ondam.airgap.page import page
from ondam.airgap.proof import Engine, Proof, cut
from ondam.airgap.sockets import Listening, family_of, listening
from ondam.supervisor.isolation import Isolation

TRIED = Attempt(
    "ear", "python serve", "connect", "AF_INET", "192.0.2.1:443", "address", "attempt", "ENETUNREACH", 3
)

OWN = Listening("ear", "unix", "/run/x.sock", 0o600)

PROOF = Proof(
    at="2026-11-30T12:00:00+09:00",
    command="ondam doctor --air-gap",
    versions={"ondam": "0.1.0"},
    user="ondam",
    around="namespace",
    means="loopback namespace filter",
    tracer="strace 6.1",
    watched_s=15.0,
    turns=({"outcome": "answered", "first_audio_ms": 900.0},),
    engines=(
        Engine(
            "ear", "stt", "base", "ready", False, Isolation("none", ("filter",)), {"x": "1"}, {"A": "b|c"}
        ),
        Engine("http://rack:8000/v1", "llm", None, "ready", True, None),
    ),
    listening=(OWN,),
    opened=(Opened("ear", "/tmp/a", written=True),),
)


def test_it_holds_when_a_watched_turn_tried_nothing() -> None:
    assert PROOF.problems == ()
    made = json.loads(json.dumps(PROOF.as_json()))
    assert (made["ok"], made["problems"]) == (True, [])
    assert made["engines"][0]["isolation"] == {
        "network": "none", "means": ["filter"], "closed": True, "remains": ["abstract"],
    }  # fmt: skip
    assert made["listening"] == [
        {
            "process": "ear",
            "family": "unix",
            "address": "/run/x.sock",
            "mode": "0600",
            "configured": False,
            "private": True,
        }
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"attempts": (TRIED,)}, "airgap_tried"),
        ({"tracer": None}, "airgap_untraced"),
        ({"turns": ()}, "airgap_no_turn"),
        ({"turns": ({"outcome": "failed", "first_audio_ms": None},)}, "airgap_no_turn"),
        ({"listening": (replace(OWN, mode=0o666),)}, "airgap_exposed"),
        ({"listening": (Listening("ear", "tcp", "127.0.0.1:80"),)}, "airgap_exposed"),
    ],
)
def test_it_does_not_hold_otherwise(changed: dict[str, object], problem: str) -> None:
    assert replace(PROOF, **changed).problems == (problem,)  # type: ignore[arg-type]


def test_what_was_only_noted_is_no_attempt() -> None:
    assert replace(PROOF, attempts=(replace(TRIED, verdict="configured"),)).problems == ()


def test_a_loopback_of_an_engines_own_is_open_to_nobody() -> None:
    own = replace(PROOF.engines[0], isolation=Isolation("loopback", ("namespace", "filter")))
    listens = (Listening("ear", "tcp", "127.0.0.1:29500"),)
    assert replace(PROOF, engines=(own,), listening=listens).problems == ()


def test_the_page_tells_everything_in_both_languages() -> None:
    proof = replace(
        PROOF, attempts=(TRIED, replace(TRIED, verdict="noted", way="socket", address="/run/nscd"))
    )
    english, korean = page(proof, "en"), page(proof, "ko")
    assert "**1 attempts to reach something outside.**" in english
    assert "| ear | connect | AF_INET | 192.0.2.1:443 | another machine | ENETUNREACH | 3 |" in english
    assert "abstract sockets of other programs" in english
    assert "A=b|c" in english
    assert "| ear | connect | AF_INET | 192.0.2.1:443 | 다른 컴퓨터 | ENETUNREACH | 3 |" in korean
    assert all(word in korean for word in ("/run/nscd", "/tmp/a", "/run/x.sock", "0600", "none filter"))


def test_secrets_are_cut_from_environments_and_addresses() -> None:
    given = {
        "B_TOKEN": "t",
        "A": "http://me:word@host/x",
        "C": "plain",
        "E_SECRET": "",
        "D": "https://host/a@b",
    }
    assert cut(given) == {
        "A": "http://…@host/x", "B_TOKEN": "…", "C": "plain", "D": "https://host/a@b", "E_SECRET": "",
    }  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_listening_sockets_are_found_with_who_may_reach_them(tmp_path: Path) -> None:
    closed, open_to_all = tmp_path / "closed.sock", tmp_path / "open.sock"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two, socket.socket() as tcp:
        for listener, address in ((one, str(closed)), (two, "\0ondam-test-listening")):
            listener.bind(address)
            listener.listen()
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        closed.chmod(0o666)
        tmp_path.chmod(0o700)
        found = listening([(os.getpid(), "me")])
        port = tcp.getsockname()[1]
        assert Listening("me", "unix", str(closed), 0o600) in found  # the folder lets nobody else pass
        assert Listening("me", "unix", "@ondam-test-listening", None) in found
        assert Listening("me", "tcp", f"127.0.0.1:{port}", None) in found
        closed.rename(open_to_all)
        tmp_path.chmod(0o755)
        assert Listening("me", "unix", str(closed), 0o777 & 0o755 | 0o022) in listening([(os.getpid(), "me")])
    assert family_of(os.getpid())[0] == os.getpid()
    assert listening([(2**30, "gone")]) == ()
