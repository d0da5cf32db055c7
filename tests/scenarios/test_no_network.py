"""Nothing leaves the machine: with a name server that never answers, and watched by our own proof."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.house import prepared_data

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

SILENT = """
import os, select, socket, subprocess, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
    asked.bind(("127.0.0.1", 53))
    status = subprocess.run(sys.argv[2:]).returncode
    waiting, _, _ = select.select([asked], [], [], 0)
    open(sys.argv[1], "w").write("asked" if waiting else "nobody asked")
sys.exit(status)
"""
"""A name server that takes every question and answers none, beside a command."""


def ondam(home: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    (home / "data").symlink_to(prepared_data())
    return subprocess.run(
        [*before, sys.executable, "-m", "ondam", *arguments],
        env={**os.environ, "ONDAM_HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="laying a file over /etc/resolv.conf takes root")
def test_a_name_server_that_never_answers_changes_nothing(tmp_path: Path) -> None:
    resolver, asked = tmp_path / "resolv.conf", tmp_path / "asked"
    # Whoever looks a name up waits for half a minute.
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    script = (
        f'ip link set lo up; mount --bind {resolver} "$(readlink -f /etc/resolv.conf)"; '
        f'exec {sys.executable} -c "$0" {asked} "$@"'
    )
    # So that an engine's look-up would get as far as the server.
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text('[supervisor]\nisolation = "off"\n')
    done = ondam(
        tmp_path, "demo", "--language", "en", "--quiet", "--json", "--out", str(tmp_path / "answer.wav"),
        before=("unshare", "--net", "--mount", "--", "sh", "-c", script, SILENT),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (turn,) = json.loads(done.stdout)["turns"]
    assert turn["outcome"] == "answered"
    assert turn["first_audio_ms"] < 25_000
    assert asked.read_text() == "nobody asked"


def test_the_proof_of_the_air_gap_holds_for_a_whole_turn(tmp_path: Path) -> None:
    page = tmp_path / "proof.md"
    done = ondam(tmp_path, "doctor", "--air-gap", "--json", "--report", str(page))
    assert done.returncode == 0, done.stderr + done.stdout
    proof: dict[str, Any] = json.loads(done.stdout)
    assert (proof["ok"], proof["problems"]) == (True, [])
    assert [one for one in proof["attempts"] if one["verdict"] != "noted"] == []
    assert proof["watched_s"] >= 15 and proof["tracer"].startswith("strace")
    assert [turn["outcome"] for turn in proof["turns"]] == ["answered"]
    by_name = {engine["name"]: engine for engine in proof["engines"]}
    assert {"faster_whisper", "llama_server", "piper", "espeak"} <= set(by_name)
    for engine in by_name.values():
        assert engine["isolation"]["network"] == "none" and engine["isolation"]["closed"]
        assert engine["environ"]["ORT_DISABLE_TELEMETRY"] == "1"
        assert engine["versions"]
    # The trace saw something: every engine's own files, and the socket of each.
    assert {one["process"] for one in proof["opened"]} >= {"daemon", "piper"}
    assert {one["process"] for one in proof["listening"]} >= {"daemon", *by_name}
    assert all(one["family"] == "unix" and one["private"] for one in proof["listening"])
    told = page.read_text("utf-8")
    assert "ondam doctor --air-gap" in told and "none namespace filter" in told
