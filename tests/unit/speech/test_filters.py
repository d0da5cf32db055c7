from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from tests.unit.speech.chunks import chunked, cuts, writing

from ondam.speech.filters import SpokenFilter, speakable
from ondam.types import Language


def heard(chunks: Iterable[str], language: Language = "ko", *, reasoning_first: bool = False) -> str:
    return run(SpokenFilter(language, reasoning_first=reasoning_first), chunks)


def run(spoken: SpokenFilter, chunks: Iterable[str]) -> str:
    out = ""
    for chunk in chunks:
        before = spoken.retractions
        text = spoken.feed(chunk)
        out = text if spoken.retractions != before else out + text
    return out + spoken.finish()


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        (["<think>비밀</thi", "nk>답입니다."], "답입니다."),
        (["<thinking>비밀</thinking>답입니다."], "답입니다."),
        (["<think>가<think>나</think>다</think>답입니다."], "답입니다."),
        (["비밀입니다. ", "</think>", "답입니다."], "답입니다."),
        (["비밀</think>답입니다."], "답입니다."),
        (["<think>끝나지 않는 생각"], ""),
        (["<THINK>비밀</THINK>답입니다."], "답입니다."),
        (["[THINK]비밀[/THINK]답입니다."], "답입니다."),
        (["◁think▷비밀◁/think▷답입니다."], "답입니다."),
        (
            [
                "<|channel|>analysis<|message|>비밀<|end|><|start|>assistant<|channel|>final<|message|>답입니다."
            ],
            "답입니다.",
        ),
        (["<seed:thi", "nk>비밀</seed:think>답입니다."], "답입니다."),
        (["<|START_THINKING|>비밀<|END_THINKING|><|START_RESPONSE|>답입니다."], "답입니다."),
        (["<|begin_of_thought|>비밀<|end_of_thought|>답입니다."], "답입니다."),
        (["비밀<|end_of_thought|>답입니다."], "답입니다."),
        (["<scratchpad>비밀</scratchpad>답입니다."], "답입니다."),
        (['<tool_call>{"name": "비밀"}</tool_call>답입니다.'], "답입니다."),
        (["<think/>답입니다."], "답입니다."),
        (["<think />답입니다."], "답입니다."),
        (["답입니다.<|im_end|>"], "답입니다."),
        (["답입니다.<thi"], "답입니다."),
        (["a < b 입니다."], "a < b 입니다."),
        (["a<b"], "a<b"),
        (["끝 <"], "끝 <"),
    ],
)
def test_b04_thinking_is_never_spoken(chunks: list[str], said: str) -> None:
    assert heard(chunks) == said
    assert heard("".join(chunks)) == said


def test_b04_a_comparison_is_not_held_back_past_its_own_characters() -> None:
    spoken = SpokenFilter("ko")
    assert spoken.feed("a <") == "a "
    assert spoken.feed(" b") == "< b"


def test_b04_a_template_that_opens_the_reasoning_is_closed_by_the_stream() -> None:
    assert heard(["비밀", "</think>", "답"], reasoning_first=True) == "답"


def test_a_tag_that_is_quoted_as_code_is_no_tag() -> None:
    assert heard(["`<think>` 태그입니다."]) == "코드 태그입니다."
    assert heard(["```\n<think>\n```\n끝"]).strip() == "끝"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**굵게** 말해요", "굵게 말해요"),
        ("*기울임*은 좋아요", "기울임은 좋아요"),
        ("3 * 4 = 12", "3 * 4 = 12"),
        ("2*3*4", "2*3*4"),
        ("`ls -la`를 치세요", "코드를 치세요"),
        ("`GPU`를 보세요", "GPU를 보세요"),
        ("[문서](https://a.b/c?d=1) 보세요.", "문서 보세요."),
        ("[괄호](https://a.b/(x)) 끝", "괄호 끝"),
        ("https://example.com/x, 그리고 끝.", "링크, 그리고 끝."),
        ("https://example.com/에서 보세요", "링크에서 보세요"),
        ("(https://a.b) www.x.com. 끝", "(링크) 링크. 끝"),
        ("<https://a.b/c> 끝", "링크 끝"),
        ("![그림](a.png)입니다", "그림입니다"),
        ("네! 좋아요", "네! 좋아요"),
        ("✅ 완료 🙂👨‍👩‍👧🇰🇷", " 완료 "),
        ("1️⃣ 하나", "1 하나"),
        ("25℃ 3㎡ ㈜온담 30°", "25℃ 3㎡ ㈜온담 30°"),
        ("## 제목\n글", " 제목\n글"),
        ("> 인용", " 인용"),
        ("- 사과\n* 배\n+ 귤", " 사과\n 배\n 귤"),
        ("- [x] 다 함", "  다 함"),
        ("1. 사과\n2. 배", "1. 사과\n2. 배"),
        ("-5도입니다", "-5도입니다"),
        ("가\n---\n나", "가\n\n나"),
        ("snake_case와 __init__", "snake_case와 init"),
        ("~~삭제~~ 1~2개", "삭제 1~2개"),
        ("<b>굵게</b> a < b &amp; c", "굵게 a < b & c"),
        ("각주[1] 하나[^2]", "각주 하나"),
        ("\\*별\\*", "*별*"),
        ("who what how h", "who what how h"),
        ("| 이름 | 값 |\n|---|:-:|\n| **A** | 1 |\n끝", "이름, 값\n\nA, 1\n끝"),
        ("앞\n```python\nprint(1)\n```\n뒤", "앞\n\n뒤"),
        ("~~~\nx\n~~~\n뒤", "\n뒤"),
        ("```ls``` 하세요", "ls 하세요"),
    ],
)
def test_b03_markup_code_and_addresses_are_not_spoken(written: str, said: str) -> None:
    assert [" ".join(line.split()) for line in heard(written).split("\n")] == [
        " ".join(line.split()) for line in said.split("\n")
    ]


def test_b03_the_whole_case_split_into_single_characters() -> None:
    written = (
        "**굵게** `ls -la` ✅ 3 * 4 = 12 [문서](https://a.b/c?d=1) 보세요. "
        "https://example.com/x, 그리고 끝.\n```sh\nrm -rf /\n```\n| 가 | 나 |\n|---|---|\n| 1 | 2 |\n"
    )
    said = heard(written)
    assert " ".join(said.split()) == "굵게 코드 3 * 4 = 12 문서 보세요. 링크, 그리고 끝. 가, 나 1, 2"


def test_b03_an_unclosed_fence_does_not_mute_the_next_answer() -> None:
    spoken = SpokenFilter("ko")
    assert not speakable(run(spoken, ["```py\nprint(1)"]))
    assert run(spoken, ["다음 답입니다."]) == "다음 답입니다."


@pytest.mark.parametrize(
    "answer", ["", "   \n", "...", "🙂", "**", "```py\nprint(1)\n```", "```\nx", "---", "<think>x"]
)
def test_b05_an_answer_of_nothing_is_not_speakable(answer: str) -> None:
    assert not speakable(heard([answer]))


@pytest.mark.parametrize("answer", ["네", "3", "ok", "**네**", "https://a.b"])
def test_b05_an_answer_of_something_is_speakable(answer: str) -> None:
    assert speakable(heard([answer]))


def test_an_address_without_end_is_said_once_and_held_in_bounds() -> None:
    spoken = SpokenFilter("en")
    said = "".join(
        spoken.feed("https://" + "x" * 997) if n == 0 else spoken.feed("x" * 1000) for n in range(50)
    )
    assert said + spoken.feed(" end") + spoken.finish() == "link end"


@given(writing, cuts)
def test_what_is_spoken_is_the_same_for_every_chunking(text: str, edges: list[int]) -> None:
    assert heard(chunked(text, edges)) == heard([text]) == heard(text)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("기온[1][2]은 [[3]](https://a.b) 낮습니다.", "기온은  낮습니다."),
        ("[2024](https://a.b) 보고서", "2024 보고서"),
        ("첫째\\n둘째", "첫째\n둘째"),
        ("C:\\Users\\kim", "C:Users kim"),
        (">140 입니다", ">140 입니다"),
        ("> 인용", "인용"),
    ],
)
def test_sources_are_left_out_and_backslashes_join_no_words(written: str, said: str) -> None:
    assert heard([written]) == said
    assert heard(list(written)) == said
