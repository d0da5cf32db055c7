"""What is said over an answer and is no question: signs of listening, and the wish for silence. Pure.

Both languages at once: people mix them, and no word means something else in the other.
"""

from __future__ import annotations

import re

SIGNS = frozenset(
    # Backchannels (Yngve 1970): short ones alone, for whoever means more says more.
    "mm mmm mhm mmhm mmhmm mm-hm mm-hmm uh-huh uhhuh uh um hm hmm huh ah oh ooh wow yeah yes yep yup ok okay "
    "right sure aha i-see got-it good great nice cool really alright "
    "응 응응 어 어어 음 음음 흠 네 네네 예 예예 아 아아 오 와 우와 하하 허 그래 그래요 그렇구나 그렇군요 그렇지 그쵸 "
    "맞아 맞아요 알겠어 알겠어요 알겠습니다 좋아 좋아요 진짜 정말 아하 오케이".split()
)

WISHES = frozenset(
    "stop stop-it stop-talking stop-please please-stop be-quiet quiet silence shut-up enough that's-enough "
    "that-is-enough never-mind cancel thank-you thanks okay-stop ok-stop "
    "그만 그만해 그만해요 그만하세요 그만-해 이제-그만 멈춰 멈춰요 멈추세요 정지 조용 조용히 조용히-해 조용히-해요 조용히-하세요 됐어 "
    "됐어요 이제-됐어 취소 고마워 고마워요 고맙습니다 감사합니다 스톱".split()
)

MOST = 3
"""So many signs in a row are still nothing else ("응, 응, 그래")."""

_WORDS = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


def _said(words: str) -> list[str]:
    return _WORDS.findall(words.lower().replace("’", "'"))


def acknowledges(words: str) -> bool:
    """Whether ``words`` are nothing but signs of listening."""
    said = _said(words)
    return 0 < len(said) <= MOST and (all(word in SIGNS for word in said) or "-".join(said) in SIGNS)


def dismisses(words: str) -> bool:
    """Whether ``words`` want silence and nothing else."""
    return "-".join(_said(words)) in WISHES
