"""Hanja read as Hangul: the most common reading of each character, with the initial-sound law.

A dictionary of words (pyhanja) would know more of the characters with two readings, but costs 44 MiB of
memory and half a second: docs/decisions/reading.md.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

_RUN = re.compile(r"[㐀-䶿一-鿿]+")
_GLOSS = re.compile(r"(?<=[가-힣])\s?[(（]\s?[㐀-䶿一-鿿·\s]+[)）]")
"""Hanja in brackets after the Hangul that it explains: ``한자(漢字)``."""

_WORDS = {
    "金氏": "김씨",
    "金浦": "김포",
    "金海": "김해",
    "娛樂": "오락",
    "快樂": "쾌락",
    "六月": "유월",
    "十月": "시월",
}
_SURNAMES = {"金": "김", "李": "이", "柳": "유", "林": "임"}

_INITIAL = str.maketrans(
    "녀뇨뉴니랴려례료류리라래로뢰루르녕념년렬률량령력련렴림립락란람랑랭록론롱륙륜륭릉린",
    "여요유이야여예요유이나내노뇌누느영염연열율양영역연염임입낙난남낭냉녹논농육윤융능인",
)
"""The initial-sound law (두음 법칙), syllable by syllable."""

_AFTER_VOWEL = {"렬": "열", "률": "율"}
_NO_FINAL, _FINAL_N = 0, 4


@lru_cache(maxsize=1)
def _readings() -> dict[str, str]:
    lines = resources.files(__package__).joinpath("hanja.txt").read_text("utf-8").splitlines()
    return {sign: line[0] for line in lines if not line.startswith("#") for sign in line[1:]}


def without_hanja(text: str) -> str:
    """``text`` with its Hanja read in Korean; characters without a reading are left out."""
    if not _RUN.search(text):
        return text
    return _RUN.sub(lambda run: _read(run[0]), _GLOSS.sub("", text))


def _read(run: str) -> str:
    if run in _WORDS:
        return _WORDS[run]
    table = _readings()
    out = ""
    for index, sign in enumerate(run):
        syllable = table.get(sign, "")
        if index == 0:
            is_name = sign in _SURNAMES and len(run) == 3
            syllable = _SURNAMES[sign] if is_name else syllable.translate(_INITIAL)
        elif syllable in _AFTER_VOWEL and out and _final(out[-1]) in (_NO_FINAL, _FINAL_N):
            syllable = _AFTER_VOWEL[syllable]
        if sign == "不" and run[index + 1 : index + 2]:
            following = table.get(run[index + 1], "")
            syllable = "부" if following and _initial(following) in "ㄷㅈ" else "불"
        out += syllable
    return out


def _final(syllable: str) -> int:
    return (ord(syllable) - ord("가")) % 28


def _initial(syllable: str) -> str:
    return "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"[(ord(syllable) - ord("가")) // 588]
