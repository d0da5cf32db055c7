from __future__ import annotations

import time

import pytest

from ondam.speech.junk import Verdict, hallucinated, verdict, without_junk_tail


@pytest.mark.parametrize(
    "text",
    [
        *(
            "시청해주셔서 감사합니다!",
            "시청해 주셔서 감사합니다.",
            "MBC 뉴스 ○○○입니다.",
            "MBC 뉴스 이덕영입니다.",
        ),
        *("한글자막 by 한효정", "자막 제공 배달의민족", "구독과 좋아요 부탁드립니다", "다음 영상에서 만나요"),
        *("(keyboard clicking)", "[음악]", "♪♪", "", " . ", "Thanks for watching!"),
        *("네, " * 30, "감사합니다. " * 30, "오늘도 시청해주셔서 감사합니다. 다음 영상에서 만나요!"),
    ],
)
def test_b13_what_silence_is_transcribed_as_is_junk(text: str) -> None:
    assert verdict(text, "ko") is Verdict.JUNK
    assert hallucinated(text, "ko")
    assert without_junk_tail(text, "ko") == ""


@pytest.mark.parametrize("text", ["감사합니다", "그래요 감사합니다", "네", "음악"])
def test_b13_what_people_say_too_is_left_to_the_energy_gate(text: str) -> None:
    assert verdict(text, "ko") is Verdict.SUSPECT
    assert not hallucinated(text, "ko")
    assert without_junk_tail(text, "ko") == text


@pytest.mark.parametrize(
    "text",
    [
        *("오늘 날씨 알려줘", "MBC 뉴스 틀어줘", "자막 켜줘", "구독 취소해줘", "좋아요", "음악 틀어줘"),
        *("자막 제공해 줘", "자막 출처가 뭐야", "알림 부탁해요", "알림 설정 해주세요"),
        *("시청해주셔서 감사합니다라고 써줘", "네 네 알겠어요", "다음 시간에 알려줘"),
    ],
)
def test_b13_real_speech_is_fine(text: str) -> None:
    assert verdict(text, "ko") is Verdict.FINE
    assert without_junk_tail(text, "ko") == text


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("Thank you for watching.", Verdict.JUNK),
        ("Please subscribe to my channel.", Verdict.JUNK),
        ("Subtitles by the Amara.org community", Verdict.JUNK),
        ("Translated by John Smith", Verdict.JUNK),
        ("Copyright WDR 2021", Verdict.JUNK),
        ("Copyright law in Korea", Verdict.FINE),
        ("Translation by Monday, please.", Verdict.FINE),
        ("Captions by whom?", Verdict.FINE),
        ("Translation made easy", Verdict.FINE),
        ("Thank you.", Verdict.SUSPECT),
        ("you", Verdict.SUSPECT),
        ("The internet", Verdict.FINE),
        ("Play some music", Verdict.FINE),
    ],
)
def test_b13_english(text: str, worth: Verdict) -> None:
    assert verdict(text, "en") is worth


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("오늘 날씨 알려줘. 시청해주셔서 감사합니다!", "오늘 날씨 알려줘."),
        ("값은 3.14야? (박수)", "값은 3.14야?"),
        ("불 켜줘. " + "네. " * 9, "불 켜줘. 네"),
        ("What time is it? Thanks for watching!", "What time is it?"),
        ("불 켜줘. 감사합니다.", "불 켜줘. 감사합니다."),
    ],
)
def test_b13_a_real_sentence_loses_its_junk_tail_alone(text: str, kept: str) -> None:
    assert without_junk_tail(text, "ko") == kept


def test_a_long_sentence_that_was_written_twice_is_kept_once() -> None:
    said = "How many days are there in a week?"
    assert without_junk_tail(f"{said} {said}", "en") == said
    assert without_junk_tail(f"{said} {said.lower()} {said}", "en") == said
    assert (
        without_junk_tail("오늘 서울 날씨는 어떤가요? 오늘 서울 날씨는 어떤가요?", "ko")
        == "오늘 서울 날씨는 어떤가요?"
    )
    for meant in ("No. No.", "정말요? 정말요?", "Count to ten. Then count to ten.", f"{said} Why?"):
        assert without_junk_tail(meant, "en") == meant


def test_a_product_of_numbers_is_said_and_no_sound_described() -> None:
    assert without_junk_tail("3 * 4 * 5는?", "ko") == "3 * 4 * 5는?"
    assert without_junk_tail("*기침* 불 켜줘.", "ko") == "불 켜줘."


def test_brackets_that_never_close_cost_no_time() -> None:
    begun = time.process_time()
    verdict("(" * 20_000, "ko")
    without_junk_tail("[" * 20_000, "en")
    assert time.process_time() - begun < 1.5
