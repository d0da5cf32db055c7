"""Ways to cut a text into the chunks of a stream."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st


def chunked(text: str, cuts: Sequence[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


cuts = st.lists(st.integers(0, 10_000), max_size=25)

writing = st.lists(
    st.sampled_from(
        [
            *(
                "네",
                "안녕하세요",
                "입니다",
                "값은",
                "3.14",
                "1,250원",
                "９",
                "v1.0.2",
                "Dr.",
                "a.m.",
                "U.S.",
                "The",
                "the",
            ),
            *(
                ".",
                ",",
                "!",
                "?",
                "…",
                "...",
                "。",
                "！",
                "？",
                "，",
                " ",
                "  ",
                "\n",
                "1.",
                "2.",
                "- ",
                "* ",
                "# ",
                "> ",
            ),
            *(
                "**",
                "*",
                "_",
                "`",
                "```",
                "```py\n",
                "~~",
                "[",
                "](",
                ")",
                "(",
                "https://a.b/c?d=1",
                "http",
                "www",
                "w",
            ),
            *(
                "<think>",
                "</think>",
                "<",
                ">",
                "<b>",
                "</b>",
                "<br>",
                "|",
                "|---|",
                "\n|",
                "&amp;",
                "&",
                "\\",
                "🙂",
                "1️⃣",
            ),
            *(
                "👨‍👩‍👧",
                '"',
                "'",
                "하고",
                "지만",
                "because",
                "9:30",
                ":",
                "-",
                "---",
                "=",
                "a",
                "h",
                "t",
                "<|im_end|>",
                "[1]",
            ),
        ]
    ),
    max_size=40,
).map("".join)
