"""Commands against a fake daemon on a real socket."""

from __future__ import annotations

import asyncio
import io
import json
import os
import wave
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from tests.unit.cli.conftest import Ondam
from tests.unit.control.fake_daemon import FakeDaemon, engine, turn

from ondam.audio.wav import read_wav
from ondam.cli.status import lines
from ondam.cli.terminal import columns, duration, named, width
from ondam.cli.up import laid_over
from ondam.control import sound, wire
from ondam.dialog.actions import Outcome
from ondam.errors import ConfigError, EngineError
from ondam.messages import catalog
from ondam.types import Audio


def wav_file(path: Path, samples: int = 16_000) -> Path:
    path.write_bytes(sound.encode(Audio(np.zeros(samples, np.int16), 16_000)))
    return path


async def test_status_in_json_is_what_the_daemon_said(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("status", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == daemon.status()


async def test_status_for_a_person_lines_up_and_names_faults_with_what_to_type(
    ondam: Ondam, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    daemon.faults = [{"code": "x", "text": "스피커가 없습니다.", "next": "ondam doctor"}]
    lines = (await ondam("status")).out.splitlines()
    assert lines[0] == "온담 0.1.0 · 듣는 중 · 한국어 · 1시간 2분째 실행 중 · pid 77"
    assert lines[1] == "마이크  내장 마이크 (정상)"
    assert lines[2] == "스피커  default (없음(찾는 중))"
    assert lines[3] == "대화    3회, 마지막 첫 소리까지 640 ms"
    assert lines[4] == "엔진"
    # smollm2-135m-instruct is the longest model: 21 columns.
    rest = "cpu  pid 4242  182 MiB"
    assert lines[5] == "  stt  faster_whisper  준비됨  whisper-base" + " " * 11 + rest
    assert lines[6] == "  llm  llama_server    준비됨  smollm2-135m-instruct  " + rest
    assert lines[7] == "  tts  espeak          준비됨  –" + " " * 22 + rest + "  예비 음성"
    assert lines[8:] == ["문제", "  ! 스피커가 없습니다.", "    → ondam doctor"]


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        ("differs", "not as planned"),
        ("unreported", "tells nothing of itself"),
        ("refused", "refused by the plan"),
        ("unknown", ""),
    ],
)
def test_an_engine_that_did_not_get_what_was_asked_for_is_marked(fit: wire.Fit, said: str) -> None:
    status = FakeDaemon().status()
    status["engines"] = [{**engine(), "fit": fit}]
    (line,) = (line for line in lines(status) if "faster_whisper" in line)
    assert line.rstrip().endswith(said or "182 MiB")


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            {"versions": {"vllm": "0.33.0"}, "context_length": 32768, "kv_dtype": "fp8"},
            "tells nothing of itself, vllm 0.33.0, 32768 tokens of context, key-value cache in fp8",
        ),
        ({"context_length": 2048}, "tells nothing of itself, 2048 tokens of context"),
        (None, "tells nothing of itself"),
    ],
)
def test_what_a_server_by_address_told_is_shown(report: dict[str, object] | None, said: str) -> None:
    status = FakeDaemon().status()
    there = {**engine("llama_server"), "name": "http://rack:8000/v1", "outside": True, "fit": "unreported"}
    status["engines"] = [{**there, "report": report}]  # type: ignore[typeddict-item]
    (line,) = (line for line in lines(status) if "rack" in line)
    assert line.rstrip().endswith("182 MiB  " + said)


@pytest.mark.parametrize("language", ["ko", "en"])
def test_every_outcome_of_a_turn_has_words(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", language)
    words = [named("cli_outcome_", outcome) for outcome in get_args(Outcome)]
    assert len(set(words)) == len(words)
    assert not {"no_speech", "no_answer"} & set(words)
    assert all(f"cli_outcome_{outcome}" in catalog() for outcome in get_args(Outcome))


async def test_ask_prints_the_answer_alone(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("ask", "몇 시야?", "--speak")
    assert (done.code, done.out, done.err) == (0, "세 시입니다.\n", "")
    assert daemon.asked == [("ask", "몇 시야?", True)]
    assert (await ondam("ask", "몇 시야?", "--json")).json == turn()


async def test_listen_invites_and_shows_both_sides(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("listen", "--timeout", "5")
    assert done.out == "You: 몇 시야?\nOndam: 세 시입니다.\n"
    assert done.err.splitlines() == [
        "Listening; please speak.",
        "(first audio 640 ms after you had finished)",
    ]
    assert daemon.asked == [("listen", 5.0)]


async def test_an_engine_that_fails_is_exit_code_6(ondam: Ondam, daemon: FakeDaemon) -> None:
    daemon.failing = EngineError("llm_down")
    done = await ondam("ask", "hi", "--json")
    assert (done.code, done.json["error"]["code"]) == (6, "llm_down")


async def test_say_speaks_aloud(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("say", "안녕", "--language", "ko", "--json")
    assert done.json == {"text": "안녕", "language": "ko", "audio": {"seconds": 0.8}}
    assert daemon.asked == [("say", "안녕", "ko")]


async def test_stop_and_down(ondam: Ondam, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ondam.cli.down.ENDS_S", 0.0)  # the fake one stays
    assert (await ondam("stop")).out == "Ondam is silent.\n"
    assert (await ondam("down", "--json")).json == {"ended": False}
    assert daemon.asked == [("stop_speaking",), ("shutdown",)]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("list.json", '[{"text": "하나", "file": "a/one.wav", "language": "ko"}, "two"]'),
        ("list.jsonl", '{"text": "하나", "file": "a/one.wav", "language": "ko"}\n\n"two"\n'),
        ("list.toml", '[[say]]\ntext = "하나"\nfile = "a/one.wav"\nlanguage = "ko"\n[[say]]\ntext = "two"\n'),
    ],
)
async def test_a_list_is_spoken_into_files(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path, name: str, written: str
) -> None:
    spec = tmp_path / name
    spec.write_text(written, "utf-8")
    out = tmp_path / "out"
    done = await ondam("say", "--spec", str(spec), "--outdir", str(out), "--language", "en", "--json")
    assert done.code == 0
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"file": str(out / "a/one.wav"), "status": "ok", "text": "하나", "seconds": 0.2},
        {"file": str(out / "002.wav"), "status": "ok", "text": "two", "seconds": 0.2},
    ]
    assert daemon.asked == [("synthesize", "하나", "ko"), ("synthesize", "two", "en")]
    spoken = read_wav(out / "a/one.wav")
    assert spoken.rate_hz == 22_050
    assert spoken.samples.tolist() == [*range(2205), *[7] * 2205]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('[{"text": "a", "file": "../a.wav"}]', "outside"),
        ('[{"text": "a", "file": "/a.wav"}]', "outside"),
        ('[{"txt": "a"}]', 'did you mean "say[0].text"'),
        ("{", "no list of texts"),
        ("3", "no list of texts"),
    ],
)
async def test_a_list_that_is_wrong_writes_nothing(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path, written: str, problem: str
) -> None:
    spec = tmp_path / "list.json"
    spec.write_text(written, "utf-8")
    done = await ondam("say", "--spec", str(spec), "--outdir", str(tmp_path / "out"))
    assert done.code == 3
    assert problem in done.err
    assert daemon.asked == []


async def test_one_text_that_fails_leaves_the_others(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.speech = []
    spec = tmp_path / "list.json"
    spec.write_text('["...", "b"]', "utf-8")
    done = await ondam("say", "--spec", str(spec), "--outdir", str(tmp_path / "out"), "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert done.code == 1
    assert (first["status"], first["seconds"], first["error"]["code"]) == (
        "error",
        None,
        "control_bad_request",
    )
    assert second["status"] == "error"
    assert len(daemon.asked) == 2


async def test_transcribe_keeps_its_contract(ondam: Ondam, daemon: FakeDaemon, tmp_path: Path) -> None:
    file = wav_file(tmp_path / "a.wav")
    done = await ondam("transcribe", str(file), "--language", "ko", "--context", "김하늘, 이바다,", "--json")
    assert done.code == 0
    answer = done.json
    assert answer["timings"].pop("total_ms") >= 0
    assert answer == {
        "file": str(file),
        "status": "ok",
        "engine": "faster_whisper",
        "language": "ko",
        "text": "안녕하세요.",
        "timings": {"audio_s": 1.0, "engine_ms": 150.0, "queued_ms": 1.0},
    }
    assert daemon.asked == [("transcribe", 16_000, 16_000, "ko", ["김하늘", "이바다"])]


async def test_a_file_that_fails_has_an_object_of_its_own_and_the_others_go_on(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path
) -> None:
    page = tmp_path / "page.wav"
    page.write_text("<html>")
    fine = wav_file(tmp_path / "fine.wav")
    done = await ondam("transcribe", str(tmp_path / "none.wav"), str(page), str(fine), "--json")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1
    assert [answer["status"] for answer in answers] == ["error", "error", "ok"]
    assert answers[0]["error"]["code"] == "cli_file_missing"
    assert answers[1]["error"]["code"] == "control_no_sound"
    none = {"audio_s": None, "engine_ms": None, "queued_ms": None, "total_ms": None}
    assert (answers[0]["text"], answers[0]["timings"]) == (None, none)


async def test_a_file_that_fails_is_named_once_also_where_it_is_the_only_one(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path
) -> None:
    page = tmp_path / "page.wav"
    page.write_text("<html>")
    for file in (page, tmp_path / "none.wav"):
        told = (await ondam("transcribe", str(file))).err.splitlines()
        assert told[0].count(str(file)) == 1
        assert told[1].startswith("→ ")


async def test_transcribe_for_a_person_prints_the_words(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path
) -> None:
    assert (await ondam("transcribe", str(wav_file(tmp_path / "a.wav")))).out == "안녕하세요.\n"


async def test_transcribe_without_a_daemon_fails_once(ondam: Ondam, tmp_path: Path) -> None:
    done = await ondam("transcribe", str(wav_file(tmp_path / "a.wav")), "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "daemon_not_running")


async def test_turns_are_a_table_with_stages(ondam: Ondam, daemon: FakeDaemon) -> None:
    head, first, second = (await ondam("turns", "-n", "2")).out.splitlines()
    assert head.split()[:4] == ["time", "outcome", "first", "audio"]
    assert first.split()[2:] == [
        "answered",
        *("640", "2400"),
        *("300", "5", "150", "80", "40", "35", "30"),
        *("몇", "시야?"),
    ]
    assert width(first) == width(second)
    assert (await ondam("turns", "--json")).json == {"turns": [turn(3), turn(2)]}


async def test_config_check_reports_every_problem_and_exits_with_3(ondam: Ondam, home: Path) -> None:
    assert (await ondam("config", "check", "--json")).json["exists"] is False
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("lenguage = 'ko'\n[llm]\nmax_token = 3\n")
    done = await ondam("config", "check")
    assert done.code == 3
    assert 'did you mean "language"' in done.err
    assert 'did you mean "llm.max_tokens"' in done.err


async def test_config_check_refuses_what_the_daemon_would_refuse(ondam: Ondam, home: Path) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[tts]\nengine = "pipper"\n[llm]\nurl = "ftp://x"\n')
    done = await ondam("config", "check")
    assert done.code == 3
    assert 'did you mean "piper"' in done.err
    assert "ftp://x" in done.err
    file.write_text('[tts]\nengine = "piper"\n')  # whose voice is not here yet
    assert (await ondam("config", "check")).code == 0


async def test_config_show_marks_what_was_changed_and_is_toml(ondam: Ondam, home: Path) -> None:
    import tomllib

    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[llm]\nmax_tokens = 3\n")
    shown = (await ondam("config", "show")).out
    assert [line for line in shown.splitlines() if line.endswith("# changed")] == [
        "llm.max_tokens = 3  # changed"
    ]
    assert tomllib.loads(shown)["llm"]["max_tokens"] == 3
    assert (await ondam("config", "path")).out == f"{file}\n"


async def test_read_shows_what_a_voice_would_be_given(ondam: Ondam) -> None:
    done = await ondam("read", "**3개** 샀어요. 끝!", "--lang", "ko", "--json")
    assert done.json == {
        "language": "ko",
        "text": "**3개** 샀어요. 끝!",
        "spoken": "세 개 샀어요. 끝!",
        "clauses": ["세 개 샀어요.", "끝!"],
    }


async def test_read_follows_a_stream_whose_characters_arrive_in_halves(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Halves(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return self.read(1)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Halves("안녕하세요. 네.".encode()), "utf-8"))
    assert (await ondam("read", "-", "--lang", "ko")).out == "안녕하세요.\n네.\n"


async def test_doctor_names_what_is_missing_with_what_to_type(ondam: Ondam, home: Path) -> None:
    done = await ondam("doctor", "--json")
    assert done.code == 1
    checks = {(check["check"], check["next"]) for check in done.json["checks"] if not check["ok"]}
    assert ("models", "ondam models add silero-vad") in checks
    assert ("engines", "ondam engines build faster_whisper") in checks
    daemon = next(check for check in done.json["checks"] if check["check"] == "daemon")
    assert daemon["ok"] is True  # not running is no fault of the machine


async def test_doctor_sees_the_running_daemon(ondam: Ondam, daemon: FakeDaemon) -> None:
    done = await ondam("doctor", "--json")
    assert {"check": "daemon", "ok": True, "text": "running, listening", "next": ""} in done.json["checks"]


def test_settings_become_nested_tables_with_toml_values() -> None:
    assert laid_over(
        ["llm.max_tokens=64", "llm.engine=llama_cpp", 'stt.names=["김하늘"]', "language=ko"]
    ) == {
        "llm": {"max_tokens": 64, "engine": "llama_cpp"},
        "stt": {"names": ["김하늘"]},
        "language": "ko",
    }
    for broken in ("llm.max_tokens", "=3", "llm..x=1"):
        with pytest.raises(ConfigError):
            laid_over([broken])
    with pytest.raises(ConfigError):
        laid_over(["llm=x", "llm.engine=y"])


async def test_a_switch_that_says_two_things_of_one_key_is_refused(ondam: Ondam) -> None:
    done = await ondam("switch", "llm.engine=llama_server", "llm.engine=llama_cpp")
    assert (done.code, "llm.engine is given twice" in done.err) == (2, True)


async def test_up_hands_the_configuration_over_and_returns_its_exit_code(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def run(config: object, places: object, config_file: object, read: Callable[[], object]) -> int:
        seen.extend([config, read()])
        return 1

    monkeypatch.setattr("ondam.app.run", run)
    done = await ondam("up", "--microphone", "none", "--set", "audio.tail_ms=0", "--set", "llm.max_tokens=7")
    assert done.code == 1
    config = seen[0]
    assert seen[1] == config  # read again, with what the command line laid over it
    assert (config.audio.microphone, config.audio.tail_ms, config.llm.max_tokens) == ("none", 0, 7)  # type: ignore[attr-defined]


def test_columns_count_hangul_as_two() -> None:
    assert width("한a") == 3
    assert columns([["한글", "1"], ["ab", "10"]], right=(1,)) == ["한글   1", "ab    10"]


@pytest.mark.parametrize(("seconds", "shown"), [(59.9, "59 s"), (60, "1 min"), (3720, "1 h 02 min")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_wav_written_here_is_one_that_python_reads() -> None:
    with wave.open(io.BytesIO(sound.encode(Audio(np.ones(5, np.int16), 8000)))) as file:
        assert file.readframes(5) == b"\x01\x00" * 5


@pytest.mark.parametrize("state", ["missing", "none"])
async def test_nobody_is_invited_to_speak_into_a_microphone_that_is_not_there(
    ondam: Ondam, daemon: FakeDaemon, state: wire.DeviceState
) -> None:
    daemon.microphone = {"name": "usb mic", "state": state}
    done = await ondam("listen")
    assert (done.code, done.out) == (7, "")
    assert done.err == "There is no microphone to listen to (configured: usb mic).\n→ ondam status\n"
    assert daemon.asked == []


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "601", "1e400", "soon"])
async def test_a_time_that_is_none_is_a_usage_error(ondam: Ondam, daemon: FakeDaemon, seconds: str) -> None:
    done = await ondam("listen", "--timeout", seconds)
    assert (done.code, done.out, daemon.asked) == (2, "", [])


@pytest.mark.parametrize("blank", ["", "   ", "\t\n", "\u3000"])
@pytest.mark.parametrize("name", ["ask", "say"])
async def test_a_blank_text_is_never_sent(
    ondam: Ondam, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, name: str, blank: str
) -> None:
    done = await ondam(name, blank, "--json")
    assert (done.code, done.json["error"]["code"], daemon.asked) == (2, "cli_usage", [])
    monkeypatch.setattr("sys.stdin", io.StringIO(blank))
    assert (await ondam(name, "-")).err == (
        f"TEXT is empty: there is nothing to ask or to say\n→ ondam {name} --help\n"
    )
    assert daemon.asked == []


async def test_a_pipe_or_a_device_in_place_of_a_sound_file_is_refused_at_once(
    ondam: Ondam, daemon: FakeDaemon, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.wav"
    os.mkfifo(pipe)
    async with asyncio.timeout(20):
        done = await ondam("transcribe", str(pipe), "/dev/zero", "--json")
        shown = await ondam("demo", "--ask", str(pipe))
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["error"]["code"] for answer in answers] == ["sound_file_special"] * 2
    assert (done.code, daemon.asked) == (1, [])
    assert shown.code == 7


async def test_a_home_that_is_a_file_is_a_mistake_in_the_configuration(
    ondam: Ondam, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    for home in (file, file / "below"):
        monkeypatch.setenv("ONDAM_HOME", str(home))
        for name in ("up", "status"):
            done = await ondam(name)
            assert done.code == 3
            assert done.err.startswith(f"ONDAM_HOME is {home}, but {file} is a file, not a folder.\n")


async def test_mode_shows_and_changes_when_it_listens(ondam: Ondam, daemon: FakeDaemon) -> None:
    assert (await ondam("mode")).out == "open: it listens all the time\n"
    assert (await ondam("mode", "Muted")).out == "muted: the microphone is closed\n"
    assert (await ondam("mode", "--json")).json == {"mode": "muted"}
    assert (await ondam("mode", "name", "--json")).json == {"mode": "name"}
    await ondam("mode", "unmuted")
    assert daemon.asked == [("set_mode", "muted"), ("set_mode", "name"), ("set_mode", "unmuted")]


async def test_a_mode_that_there_is_not_is_a_usage_error_with_the_nearest(
    ondam: Ondam, daemon: FakeDaemon
) -> None:
    done = await ondam("mode", "mute")
    assert (done.code, done.out, daemon.asked) == (2, "", [])
    assert done.err == (
        "there is no mode 'mute' (did you mean 'muted'?); the modes are open, name, push, muted, unmuted\n"
        "→ ondam mode --help\n"
    )
    assert (await ondam("mode", "x")).err.startswith("there is no mode 'x'; the modes are")


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("open", "듣는 중"),
        ("name", "이름을 부르길 기다리는 중"),
        ("push", "말하기 버튼을 기다리는 중"),
        ("muted", "음소거"),
    ],
)
async def test_status_says_what_is_waited_for(
    ondam: Ondam, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, mode: wire.Mode, shown: str
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    daemon.mode = mode
    daemon.microphone = {"name": "내장 마이크", "state": "muted" if mode == "muted" else "ok"}
    lines = (await ondam("status")).out.splitlines()
    assert lines[0].split(" · ")[1] == shown
    assert lines[1] == f"마이크  내장 마이크 ({'음소거: 닫혀 있음' if mode == 'muted' else '정상'})"


def test_every_mode_has_words() -> None:
    assert all(f"cli_mode_{mode}" in catalog() for mode in wire.MODES)
    assert all(f"cli_waits_{mode}" in catalog() for mode in wire.MODES if mode != "open")


async def test_listening_while_muted_says_what_to_type(ondam: Ondam, daemon: FakeDaemon) -> None:
    daemon.microphone = {"name": "default", "state": "muted"}
    done = await ondam("listen")
    assert (done.code, done.out) == (4, "")
    assert done.err == "Ondam is muted: the microphone is closed.\n→ ondam mode open\n"
    assert daemon.asked == []


async def test_the_talk_button_for_a_hotkey(ondam: Ondam, daemon: FakeDaemon) -> None:
    assert (await ondam("listen", "--toggle")).out == "Listening; call it again when you have finished.\n"
    assert (await ondam("listen", "--toggle")).out == "Heard; the answer follows.\n"
    assert (await ondam("listen", "--toggle", "--json")).json == {"pressed": True}
    assert daemon.asked == [("toggle",)] * 3
