from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ondam.audio import write_wav
from ondam.errors import AudioError
from ondam.measure.transcripts import recordings, sentences, wavs
from ondam.types import Audio


def wav(path: Path, rate_hz: int = 8_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_wav(path, Audio(np.full(rate_hz // 2, 500, np.int16), rate_hz))
    return path


def code_of(folder: Path) -> tuple[str, str]:
    with pytest.raises(AudioError) as raised:
        recordings(folder, "en")
    return raised.value.code, str(raised.value)


def test_the_shipped_questions_come_with_their_words() -> None:
    assert len(recordings(None, "en")) >= 8
    assert recordings(None, "ko")[0].words == "오늘 날씨가 어떻습니까?"


def test_words_stand_beside_each_recording(tmp_path: Path) -> None:
    wav(tmp_path / "b.wav").with_suffix(".txt").write_text("\ufeffGood\nnight. \n", "utf-8")
    wav(tmp_path / "a.wav").with_suffix(".txt").write_text("Hello.", "utf-8")
    found = recordings(tmp_path, "en")
    assert [(one.name, one.words, one.seconds) for one in found] == [
        ("a.wav", "Hello.", 0.5),
        ("b.wav", "Good night.", 0.5),
    ]
    assert (found[0].audio().rate_hz, len(found[0].audio().samples)) == (16_000, 8_000)


def test_recorders_that_write_capitals_are_understood(tmp_path: Path) -> None:
    wav(tmp_path / "A 방.WAV").with_suffix(".txt").write_text("Hello.", "utf-8")
    (tmp_path / "notes.md").write_text("no sound", "utf-8")
    (tmp_path / "older.wav").mkdir()
    assert [path.name for path in wavs(tmp_path)] == ["A 방.WAV"]
    assert [one.words for one in recordings(tmp_path, "en")] == ["Hello."]


def test_or_in_one_list(tmp_path: Path) -> None:
    wav(tmp_path / "sub" / "a.wav")
    wav(tmp_path / "b.wav")
    (tmp_path / "words.tsv").write_text("file\ttext\nsub/a.wav\tOne.\n\nb.wav\tTwo.\n", "utf-8")
    assert [(one.name, one.words) for one in recordings(tmp_path, "en")] == [
        ("sub/a.wav", "One."),
        ("b.wav", "Two."),
    ]
    (tmp_path / "words.tsv").unlink()
    (tmp_path / "words.jsonl").write_text(json.dumps({"file": "b.wav", "text": "셋"}) + "\n", "utf-8")
    assert [one.words for one in recordings(tmp_path, "ko")] == ["셋"]


def test_what_is_wrong_is_told_with_its_file(tmp_path: Path) -> None:
    assert code_of(tmp_path)[0] == "bench_no_clips"
    clip = wav(tmp_path / "a.wav")
    code, told = code_of(tmp_path)
    assert code == "quality_no_transcript"
    assert "a.wav" in told
    assert "a.txt" in told
    clip.with_suffix(".txt").write_text(" …\n", "utf-8")
    code, told = code_of(tmp_path)
    assert code == "quality_no_words"
    assert "a.txt" in told
    clip.with_suffix(".txt").write_bytes("나".encode("euc-kr"))
    code, told = code_of(tmp_path)
    assert code == "quality_text_unreadable"
    assert "a.txt" in told
    clip.with_suffix(".txt").write_text("Hello.", "utf-8")
    clip.write_bytes(b"no sound at all")
    code, told = code_of(tmp_path)
    assert code == "sound_file_broken"
    assert "a.wav" in told


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        ("a.tsv", "a.wav", "line 1: a file and its words"),
        ("a.tsv", "\tHello", "line 1: a file and its words"),
        ("a.tsv", "a.wav\t  ", "line 1: there are no words for a.wav"),
        ("a.tsv", "../a.wav\tHello", "line 1: ../a.wav is outside"),
        ("a.jsonl", "{", "line 1: a file and its words"),
        ("a.jsonl", '["a.wav", "Hello"]', "line 1: a file and its words"),
        ("a.jsonl", '{"file": "a.wav", "text": 3}', "line 1: a file and its words"),
    ],
)
def test_a_broken_line_of_a_list_is_told_with_its_number(
    tmp_path: Path, name: str, line: str, told: str
) -> None:
    wav(tmp_path / "a.wav")
    (tmp_path / name).write_text(line, "utf-8")
    code, text = code_of(tmp_path)
    assert code == "quality_list_line"
    assert told in text
    assert name in text


def test_a_list_that_names_a_file_which_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("gone.wav\tHello", "utf-8")
    code, told = code_of(tmp_path)
    assert code == "sound_file_missing"
    assert "gone.wav" in told
    (tmp_path / "b.jsonl").write_text("", "utf-8")
    assert code_of(tmp_path)[0] == "quality_lists"


def test_sentences_come_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("One.\n\n ... \nTwo.\n", "utf-8")
    assert sentences(path, "en") == ["One.", "Two."]
    path.write_text("\n", "utf-8")
    with pytest.raises(AudioError, match=r"s\.txt"):
        sentences(path, "en")
