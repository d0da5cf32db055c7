from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from ondam.audio.wav import read_wav, write_wav
from ondam.errors import AudioError
from ondam.types import Audio

HALF = 16384


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("rate_hz", [8000, 22050, 96000])
def test_every_width_channel_count_and_rate_is_read(
    tmp_path: Path, subtype: str, channels: int, rate_hz: int
) -> None:
    file = tmp_path / "sound.wav"
    soundfile.write(file, np.full((100, channels), 0.5), rate_hz, subtype=subtype)
    audio = read_wav(file)
    assert audio.rate_hz == rate_hz
    assert audio.samples.tolist() == [HALF] * 100


def test_stereo_is_mixed_to_the_mean(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    soundfile.write(file, np.array([[0.5, 0.0]] * 10), 16000, subtype="PCM_16")
    assert read_wav(file).samples.tolist() == [HALF // 2] * 10


def test_what_is_written_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    samples = np.array([-32768, -1, 0, 1, 32767], np.int16)
    write_wav(tmp_path / "new" / "sound.wav", Audio(samples, 22050))
    audio = read_wav(tmp_path / "new" / "sound.wav")
    assert (audio.samples.tolist(), audio.rate_hz) == (samples.tolist(), 22050)
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["sound.wav"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "sound_file_empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "sound_file_broken"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "sound_file_broken"),
        (b"RIFF\x00\x00\x00\x00WAVE", "sound_file_broken"),
        (b"\x00" * 4096, "sound_file_broken"),
        (b"RIFF", "sound_file_broken"),
    ],
)
def test_what_is_no_sound_is_named(tmp_path: Path, content: bytes, code: str) -> None:
    file = tmp_path / "sound.wav"
    file.write_bytes(content)
    with pytest.raises(AudioError) as caught:
        read_wav(file)
    assert caught.value.code == code
    assert str(file) in str(caught.value)
    assert str(file) in caught.value.message("ko").text


def test_a_web_page_in_place_of_a_sound_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    file.write_bytes(b"<!DOCTYPE html><html>" * 9)
    with pytest.raises(AudioError, match="<!DOCTYPE html>"):
        read_wav(file)


def test_a_header_without_samples_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    soundfile.write(file, np.zeros((0, 1)), 16000, subtype="PCM_16")
    with pytest.raises(AudioError) as caught:
        read_wav(file)
    assert caught.value.code == "sound_file_empty"


def test_a_file_that_is_not_there_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(AudioError) as missing:
        read_wav(tmp_path / "nowhere.wav")
    with pytest.raises(AudioError) as folder:
        read_wav(tmp_path)
    assert (missing.value.code, folder.value.code) == ("sound_file_missing", "sound_file_unreadable")


def test_a_copy_that_was_broken_off_gives_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    write_wav(file, Audio(np.full(1000, 7, np.int16), 16000))
    file.write_bytes(file.read_bytes()[: 44 + 2 * 600])
    assert read_wav(file).samples.tolist() == [7] * 600


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_stream_that_never_knew_its_length_is_read_to_its_end(tmp_path: Path, size: int) -> None:
    file = tmp_path / "sound.wav"
    write_wav(file, Audio(np.full(1000, 7, np.int16), 16000))
    content = bytearray(file.read_bytes())
    content[4:8] = content[40:44] = struct.pack("<I", size)
    file.write_bytes(content)
    assert read_wav(file).samples.tolist() == [7] * 1000


def test_floats_that_are_no_numbers_are_silence(tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    frames = np.array([[np.nan, 0.5], [np.inf, 0.5], [0.5, 0.5]], np.float32)
    soundfile.write(file, frames, 16000, subtype="FLOAT")
    assert read_wav(file).samples.tolist() == [HALF // 2, HALF // 2, HALF]


def test_a_place_that_cannot_be_written_is_named_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AudioError) as caught:
        write_wav(tmp_path / "file" / "sound.wav", Audio(np.zeros(1, np.int16), 16000))
    assert caught.value.code == "sound_file_unwritable"
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_sound_file(path: str) -> None:
    with pytest.raises(AudioError) as raised:
        read_wav(Path(path))
    assert raised.value.code == "sound_file_special"


def test_a_pipe_that_nobody_writes_into_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(AudioError) as raised:
        read_wav(tmp_path / "a.wav")
    assert raised.value.code == "sound_file_special"
