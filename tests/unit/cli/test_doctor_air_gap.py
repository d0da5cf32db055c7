from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.airgap.test_proof import PROOF, TRIED

from ondam.airgap.page import page
from ondam.airgap.proof import Proof
from ondam.cli import doctor_air_gap
from ondam.cli.doctor_air_gap import configured, run, wished_for
from ondam.config import load
from ondam.errors import EngineError
from ondam.places import Places, places


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setenv("ONDAM_LANGUAGE", "en")
    monkeypatch.setattr("ondam.cli.doctor_air_gap.sys.platform", "linux")
    monkeypatch.setattr("ondam.cli.doctor_air_gap.shutil.which", lambda name: "/usr/bin/strace")
    return places({"ONDAM_HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/tmp"})


def found(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prove(*_: object) -> Proof:
        return proof

    monkeypatch.setattr(doctor_air_gap, "_prove", prove)


def test_a_proof_that_holds_ends_with_0_and_its_page_is_written(
    here: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(PROOF, monkeypatch)
    report = tmp_path / "증명.md"
    assert run(here, report, True, False) == 0
    assert report.read_text("utf-8").startswith("# Ondam: proof of the air gap\n\n**Nothing tried to reach")
    assert capsys.readouterr().out.splitlines() == [
        "✓ Nothing tried to reach anything outside.", f"The whole report: {report}",
    ]  # fmt: skip


def test_an_attempt_ends_it_with_1_in_words_and_as_json(
    here: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(replace(PROOF, attempts=(TRIED,)), monkeypatch)
    assert run(here, None, True, False) == 1
    assert "192.0.2.1:443" in capsys.readouterr().out
    assert run(here, None, True, True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["attempts"][0]["address"]) == (False, "192.0.2.1:443")


def test_without_a_tracer_it_says_what_to_install(
    here: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("ondam.cli.doctor_air_gap.shutil.which", lambda name: None)
    found(replace(PROOF, tracer=None), monkeypatch)
    assert run(here, None, True, False) == 1
    assert "sudo apt install strace" in capsys.readouterr().err


def test_elsewhere_than_on_linux_nothing_can_be_proven(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.cli.doctor_air_gap.sys.platform", "darwin")
    with pytest.raises(EngineError) as raised:
        run(here, None, True, False)
    assert raised.value.code == "airgap_linux_alone"


def test_the_systems_daemon_is_proven_with_the_rights_of_its_user(
    here: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[Path] = []
    monkeypatch.setattr(doctor_air_gap, "become_owner", became.append)

    async def prove(*_: object) -> Proof:
        became.append(Path("/proven"))
        return PROOF

    monkeypatch.setattr(doctor_air_gap, "_prove", prove)
    report = tmp_path / "proof.md"
    report.write_text("of yesterday, " * 1000)
    assert run(here, None, True, True) == 0
    assert run(replace(here, group="ondam"), report, True, True) == 0
    assert became == [Path("/proven"), here.state.parent, Path("/proven")]
    assert "| as the user | ondam |" in report.read_text("utf-8")
    assert "of yesterday" not in report.read_text("utf-8")


def test_engines_by_address_are_known_by_host_and_port() -> None:
    shipped = load(None)
    assert configured(shipped) == frozenset()
    there = {
        "stt": {"address": "tcp://10.0.0.7:10300"},
        "llm": {"url": "https://rack/v1"},
        "tts": {"address": "unix:///run/x"},
    }
    assert configured(load(None, there)) == {("10.0.0.7", 10300), ("rack", 443)}


def test_a_port_for_metrics_is_listed_as_wished_for_and_exposes_nothing() -> None:
    assert wished_for(load(None)) == ()
    (port,) = wished_for(load(None, {"metrics": {"listen": "127.0.0.1:9464"}}))
    proof = replace(PROOF, listening=(*PROOF.listening, port))
    assert proof.problems == ()
    assert "| daemon | tcp | 127.0.0.1:9464 | metrics.listen in config.toml, not opened" in page(proof, "en")
    (port,) = wished_for(load(None, {"metrics": {"listen": "[::]:9464"}}))
    assert (port.family, port.address) == ("tcp6", "[::]:9464")


def test_a_report_that_cannot_be_written_is_told_before_the_proof_is_made(
    here: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prove(*_: object) -> Proof:
        raise AssertionError("a minute for nothing")

    monkeypatch.setattr(doctor_air_gap, "_prove", prove)
    with pytest.raises(EngineError) as caught:
        run(here, tmp_path / "missing" / "proof.md", True, False)
    assert caught.value.code == "airgap_report_unwritable"


def test_what_a_bundle_brought_lies_in_ondams_folders(
    here: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments = str(tmp_path / "versions/1.0-abc")
    assert environments not in doctor_air_gap._own(here, here)
    monkeypatch.setattr(doctor_air_gap, "carried", lambda: Path(environments))
    assert environments in doctor_air_gap._own(here, here)


@pytest.mark.parametrize(
    ("exported", "isolated", "told"),
    [
        ({}, True, "ondam doctor --air-gap"),
        ({"ONDAM_SYSTEM": "1"}, True, "ondam --system doctor --air-gap"),
        ({"ONDAM_HOME": "/h"}, False, "ONDAM_HOME=/h ondam doctor --air-gap --without-isolation"),
        ({"ONDAM_HOME": "/my 집"}, True, "ONDAM_HOME='/my 집' ondam doctor --air-gap"),
    ],
)
def test_the_proof_says_how_it_is_repeated(
    monkeypatch: pytest.MonkeyPatch, exported: dict[str, str], isolated: bool, told: str
) -> None:
    for name in ("ONDAM_HOME", "ONDAM_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in exported.items():
        monkeypatch.setenv(name, value)
    assert doctor_air_gap._command(isolated) == told
