"""The machine's file below the user's own; which line of which file each value comes from."""

from __future__ import annotations

import os
import tempfile
import time
import tomllib
from pathlib import Path

import pytest

from ondam.config import laid, load, over
from ondam.config.layers import Place, lines, machine_config, placed
from ondam.errors import ConfigError
from ondam.places import MACHINE_CONFIG, MACHINE_RUNTIME, answering, places, starting

TEXT = '''# of the machine
language = "ko"

[llm]
system_prompt_en = """
[no.table]
key = "no key"
"""
engine = "auto" ; stop = 1
'''.replace('engine = "auto" ; stop = 1', 'engine = "auto"')

SEVERAL = """
a.b."c d" = [
  1,
  2,
]
inline = { x = 1, y = { z = 2 } }
[[canned]]
match = "안녕"
say = ["네", "반갑습니다"]

[[canned]]
pattern = '^bye'
[engines.piper]  # a comment
[x.y]
k = 1
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "etc 온담" / "config.toml"
    file.parent.mkdir()
    monkeypatch.setenv("ONDAM_SYSTEM_CONFIG", str(file))
    return file


def test_every_key_has_the_line_that_it_begins_on() -> None:
    assert dict(lines(TEXT)) == {
        "language": 2,
        "llm": 4,
        "llm.system_prompt_en": 5,
        "llm.engine": 9,
    }
    assert dict(lines(SEVERAL)) == {
        **{"a": 2, "a.b": 2, "a.b.c d": 2},
        **{"inline": 6, "inline.x": 6, "inline.y": 6, "inline.y.z": 6},
        **{"canned[0]": 7, "canned[0].match": 8, "canned[0].say": 9},
        **{"canned[1]": 11, "canned[1].pattern": 12, "engines.piper": 13, "x.y": 14, "x.y.k": 15},
    }
    tomllib.loads(SEVERAL)


def test_the_users_own_lies_over_the_machines_key_by_key(machine: Path, tmp_path: Path) -> None:
    machine.write_text('language = "ko"\n[llm]\nmax_tokens = 77\n[audio]\ntail_ms = 10\n', "utf-8")
    own = tmp_path / "config.toml"
    own.write_text("\n[llm]\nmax_tokens = 99\n", "utf-8")
    layers = laid(own)
    config = over(layers)
    assert (config.language, config.llm.max_tokens, config.audio.tail_ms) == ("ko", 99, 10)
    assert placed(layers, "llm.max_tokens") == Place(own, 3)
    assert placed(layers, "audio.tail_ms") == Place(machine, 5)
    assert placed(layers, "audio.echo") is None
    assert load(own) == config
    assert load(tmp_path / "none.toml").llm.max_tokens == 77
    assert load(None).language == "auto", "the shipped values alone"


def test_a_wrong_key_names_its_file_and_its_line(machine: Path, tmp_path: Path) -> None:
    machine.write_text("[detect]\nvad_treshold = 0.9\nthreshold = 0.2\n", "utf-8")
    own = tmp_path / "config.toml"
    own.write_text("[llm]\nmax_tokens = 'many'\n[engines.piper]\n", "utf-8")
    with pytest.raises(ConfigError) as raised:
        load(own, {"audio": {"tail_ms": -1}})
    assert sorted(str(raised.value).splitlines()) == sorted(
        [
            f"{machine}, {own} with --set cannot be used:",
            f'  {machine}:2: detect.vad_treshold: unknown key; did you mean "detect.threshold"?',
            f"  {own}:2: llm.max_tokens: input should be a valid integer (found 'many')",
            "  audio.tail_ms: input should be greater than or equal to 0 (found -1)",
            f"  {machine}:3: detect.release = 0.35 does not go with detect.threshold = 0.2: what ends a voice"
            " would lie above what begins it, and cut it up; lower detect.release or raise detect.threshold",
        ]
    )


def test_one_file_alone_is_named_once(machine: Path, tmp_path: Path) -> None:
    machine.write_text("[audio]\nx = 1\n", "utf-8")
    with pytest.raises(ConfigError) as raised:
        load(tmp_path / "none.toml")
    assert str(raised.value) == f"{machine} cannot be used:\n  audio.x: unknown key"


def test_a_list_of_one_file_is_not_mixed_with_the_others(machine: Path, tmp_path: Path) -> None:
    machine.write_text('[[canned]]\nmatch = "a"\nsay = "b"\n', "utf-8")
    own = tmp_path / "config.toml"
    own.write_text("canned = []\n", "utf-8")
    assert load(own).canned == []
    assert placed(laid(own), "canned") == Place(own, 1)


def test_what_the_machines_file_is(tmp_path: Path) -> None:
    assert machine_config({}) == MACHINE_CONFIG
    assert machine_config({"ONDAM_HOME": "/x"}) is None, "it moves everything"
    assert machine_config({"ONDAM_HOME": "/x", "ONDAM_SYSTEM_CONFIG": "/y/c.toml"}) == Path("/y/c.toml")
    assert machine_config({"ONDAM_SYSTEM_CONFIG": ""}) is None


def test_the_systems_daemon_uses_etc_and_its_state_alone() -> None:
    system = places({"ONDAM_SYSTEM": "1", "HOME": "/home/somebody", "XDG_CONFIG_HOME": "/home/x"})
    assert (system.config_file, system.state) == (MACHINE_CONFIG, Path("/var/lib/ondam/state"))
    assert (system.control_socket, system.group) == (MACHINE_RUNTIME / "control.sock", "ondam")
    assert places({"ONDAM_HOME": "/tmp/a", "XDG_RUNTIME_DIR": "/tmp"}).group is None


def test_who_has_no_daemon_of_his_own_is_answered_by_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    # Short: a socket's path may have 107 bytes.
    runtime = tempfile.TemporaryDirectory(prefix="ondam-")
    request.addfinalizer(runtime.cleanup)
    environ = {"XDG_RUNTIME_DIR": runtime.name}
    own = places(environ).control_socket
    system = tmp_path / "run-ondam"
    monkeypatch.setattr("ondam.places.MACHINE_RUNTIME", system)
    assert answering(environ) == own, "there is neither: one's own is what to start"
    system.mkdir()
    assert answering(environ) == system / "control.sock"
    home = {**environ, "ONDAM_HOME": str(tmp_path)}
    assert answering(home) == places(home).control_socket, "it moves everything"
    own.parent.mkdir()
    own.touch()
    assert answering(environ) == own


def test_nobody_writes_into_a_folder_called_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    # What os.path.expanduser gives without HOME to a user whom the database does not know.
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(ConfigError) as raised:
        places({})
    assert raised.value.code == "home_unknown"


def test_lines_are_counted_as_an_editor_does_and_strings_may_hold_anything() -> None:
    text = (
        'a = "\u2028 \x85 # [ \\" {"\r\nb = """ ] \\""" [ ""\n"""""\nc = \'\'\'[\n\'\'\'\'\n'
        "d = [ # ]\n  ']', [\n], { x = 1 },\n]\n[t] # [\ne = 1"
    )
    tomllib.loads(text)
    assert dict(lines(text)) == {"a": 1, "b": 2, "c": 4, "d": 6, "t": 10, "t.e": 11}


def test_a_long_list_takes_no_longer_than_it_is_long() -> None:
    began = time.process_time()
    assert dict(lines("x = [\n" + '"aaaa",\n' * 20_000 + "]\ny = 1\n")) == {"x": 1, "y": 20_003}
    assert time.process_time() - began < 5


@pytest.mark.parametrize("kind", ["pipe", "device", "large", "folder"])
def test_what_is_no_file_of_settings_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    own = tmp_path / "config.toml"
    if kind == "pipe":
        os.mkfifo(own)
    elif kind == "device":
        own.symlink_to("/dev/zero")
    elif kind == "large":
        own.write_text("# long\n" * 200_000)
    else:
        own.mkdir()
    with pytest.raises(ConfigError) as raised:
        load(own)
    assert (raised.value.code, raised.value.facts["path"]) == ("file_unreadable", own)


def test_a_file_that_may_not_be_looked_at_is_named(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: object, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.lstat", closed)
    monkeypatch.setattr("ondam.config.schema.os.open", closed)
    with pytest.raises(ConfigError) as raised:
        load(tmp_path / "config.toml")
    assert (raised.value.code, raised.value.facts["path"]) == ("file_unreadable", machine)


def test_a_home_that_may_not_be_looked_at_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", closed)
    with pytest.raises(ConfigError) as raised:
        places({"ONDAM_HOME": "/home/somebody/ondam"})
    assert (raised.value.code, raised.value.facts["home"]) == ("home_closed", "/home/somebody/ondam")


def test_what_is_typed_where_nothing_answers_is_what_starts_the_daemon_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit, runtime, own = tmp_path / "ondam.service", tmp_path / "run", tmp_path / "own/control.sock"
    monkeypatch.setattr("ondam.places.MACHINE_UNIT", unit)
    monkeypatch.setattr("ondam.places.MACHINE_RUNTIME", runtime)
    assert starting(own, {}) == "ondam up"
    assert starting(runtime / "control.sock", {}) == "sudo systemctl start ondam"
    unit.touch()
    assert starting(own, {}) == "sudo systemctl start ondam", "stopped, it has no folder in /run"
    assert starting(own, {"ONDAM_HOME": "/x"}) == "ondam up", "that is an instance of its own"
