"""An engine that calls out, in every way there is: seen when it may, refused and seen when it may not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.engine.staffed import ENGINES, mood_of, staffed

from ondam.airgap import trace
from ondam.airgap.attempts import Attempt, attempts
from ondam.places import Places
from ondam.supervisor.leash import leashed

pytestmark = [
    pytest.mark.engines,  # strace, which script/test installs
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing of it exists"),
]


@dataclass(frozen=True)
class Watched:
    seen: tuple[Attempt, ...]
    """Of the engine."""
    got: dict[str, str]
    """What it says that became of each."""


def watched(home: Places, tmp_path: Path, isolation: str) -> Watched:
    told = json.dumps({"isolation": isolation, "into": str(tmp_path / "got.json")})
    command = [*trace.command(tmp_path), sys.executable, "-m", "tests.faults.traced_daemon", told]
    environ = {
        **os.environ,
        "ONDAM_HOME": str(home.state.parent),
        "XDG_RUNTIME_DIR": str(home.runtime.parent),
    }
    # In a network with nothing in it, so that what is tried without isolation reaches nobody either.
    done = subprocess.run(
        leashed(command, "loopback"), env=environ, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    pids = json.loads(done.stdout)
    assert pids["state"] == "ready"
    found = trace.Trace.read(tmp_path)

    def name(thread: int) -> str:
        return "engine" if pids["engine"] in found.ancestors(thread) else "daemon"

    seen = attempts(found, name, own=lambda path: path.startswith(str(home.runtime)), configured=frozenset())
    assert [one for one in seen if one.process == "daemon" and one.verdict == "attempt"] == []
    return Watched(
        tuple(one for one in seen if one.verdict == "attempt"),
        json.loads((tmp_path / "got.json").read_text()),
    )


def test_without_isolation_every_way_out_is_seen_with_its_address(home: Places, tmp_path: Path) -> None:
    found = watched(home, tmp_path, "off")
    assert (found.got["udp"], found.got["tcp"]) == ("ENETUNREACH", "ENETUNREACH")
    assert (found.got["abstract"], found.got["child"]) == ("ok", "ok")
    assert found.got["dns"].startswith("EAI")
    seen = {(one.way, one.call, one.address, one.outcome) for one in found.seen}
    assert {
        ("address", "sendto", "192.0.2.1:9", "ENETUNREACH"),
        ("address", "connect", "192.0.2.1:9", "ENETUNREACH"),
        ("abstract", "connect", "@ondam-test-bus", "ok"),
    } <= seen
    assert any(one.way == "name_service" and one.address.endswith(":53") for one in found.seen)
    assert {one.process for one in found.seen} == {"engine"}


def test_with_isolation_every_way_out_is_refused_and_seen(home: Places, tmp_path: Path) -> None:
    found = watched(home, tmp_path, "possible")
    assert {found.got[name] for name in ("udp", "tcp", "child")} == {"EAFNOSUPPORT"}
    assert found.got["dns"].startswith("EAI")
    assert found.got["abstract"] == "ECONNREFUSED"
    assert {one.outcome for one in found.seen} == {"EAFNOSUPPORT", "ECONNREFUSED"}
    refused = [one for one in found.seen if one.way == "family"]
    # UDP, TCP, the child's, and at least one for the name.
    assert sum(one.times for one in refused) >= 4
    assert {one.address for one in found.seen if one.way == "abstract"} == {"@ondam-test-bus"}
    assert not [one for one in found.seen if one.way in {"address", "name_service", "loopback"}]


SHORTLY = (
    "from ondam.cli import doctor_air_gap; from ondam.__main__ import main; "
    # The engine calls out before it is ready.
    "doctor_air_gap.WATCHED_S = 0.0; main()"
)


def test_the_command_finds_an_engine_that_calls_out_and_says_whereto(tmp_path: Path) -> None:
    staffed(tmp_path)
    calls = {"calls": str(tmp_path / "got.json"), "abstract": "ondam-test-bus"}
    mood_of(tmp_path, ENGINES["tts"]).write_text(json.dumps(calls))
    lines = [f'{stage}.engine = "{name}"\n' for stage, name in ENGINES.items()]
    lines += [f'{stage}.model = "/dev/null"\n' for stage in ("stt", "llm")]
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text('language = "en"\n' + "".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", SHORTLY, "doctor", "--air-gap", "--without-isolation", "--json"],
        env={**os.environ, "ONDAM_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stderr + done.stdout
    proof = json.loads(done.stdout)
    assert (proof["ok"], proof["problems"]) == (False, ["airgap_tried"])
    assert [turn["outcome"] for turn in proof["turns"]] == ["answered"]
    tried = [one for one in proof["attempts"] if one["verdict"] == "attempt"]
    assert {one["process"] for one in tried} == {ENGINES["tts"]}
    seen = {(one["way"], one["call"], one["address"]) for one in tried}
    assert {
        ("address", "sendto", "192.0.2.1:9"),
        ("address", "connect", "192.0.2.1:9"),
        ("abstract", "connect", "@ondam-test-bus"),
    } <= seen
    assert any(way == "name_service" and address.endswith(":53") for way, _, address in seen)
