"""Every finding has a journal that triggers it, and the nearest one that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.journal.rows import FACTS, facts, row

from ondam.journal.figures import figures
from ondam.journal.findings import LOOKS, SEVERITIES
from ondam.journal.report import report
from ondam.journal.steady import Steadiness
from ondam.messages import catalog

Rows = list[dict[str, Any]]


def found(rows: Rows, told: dict[str, Any] = FACTS) -> dict[str, dict[str, Any]]:
    (group,) = report(map(figures, rows), {"c1": told}, Steadiness(5, 0.1)).as_json("en")["groups"]
    return {finding["code"]: finding for finding in group["findings"]}


def rows(count: int = 20, **other: Any) -> Rows:
    return [row(n, **other) for n in range(count)]


def some(bad: int, of: int = 20, **other: Any) -> Rows:
    return [row(n, **(other if n < bad else {})) for n in range(of)]


def waiting(stage_ms: float, made: int, dropped: int) -> Rows:
    """Recognition takes ``stage_ms`` after an endpoint of 200 ms."""
    return rows(
        stages_ms={"stt": stage_ms, "tts_first_audio": 390.0 - stage_ms},
        drafts={"made": made, "dropped": dropped},
    )


def growing(long_ms: float) -> Rows:
    return [
        row(n, tokens={"prompt": 100, "cached": 80} if n < 10 else {"prompt": 900, "cached": 880},
            engine_ms={"llm_first_token": 100.0 if n < 10 else long_ms})
        for n in range(20)
    ]  # fmt: skip


def voice_beside(busy_ms: float, whole_ms: float) -> Rows:
    """In every second turn the language model has 500 ms to go when the voice begins; the voice takes
    ``whole_ms`` for its 3 s of sound then, and 300 ms otherwise."""
    busy = {"llm_last_token": 900.0, "tts_first_audio": busy_ms, "tts": whole_ms}
    return [row(n, engine_ms=busy if n % 2 else {}) for n in range(20)]


def benched(alone_ms: float) -> Rows:
    engine = {"llm_last_token": 900.0, "tts_first_audio": 200.0}
    return rows(engine_ms=engine, raw_ms={"tts_first_audio": alone_ms})


def loaded(seconds: float) -> Rows:
    return rows(engines={"llama_server": {"pid": 2, "started_at": "a", "load_s": seconds}})


def endpoint(ms: float, first_audio_ms: float = 600.0) -> Rows:
    return rows(
        first_audio_ms=first_audio_ms, stages_ms={"endpoint": ms, "tts_first_audio": first_audio_ms - ms - 10}
    )


def cold(count: int) -> Rows:
    return [row(n, population="cold" if n < count else "settled", settled=n >= count) for n in range(40)]


NO_DRAFTS = {**FACTS, "drafts": {"most_per_turn": 0}}
LIE = {"what": "provider of main", "wanted": "cuda:0", "got": "CPUExecutionProvider"}
SILENT = {"what": "report", "wanted": "report.json", "got": None}
GRAPHS = {"what": "cuda_graphs", "wanted": True, "got": False}

CASES: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    # name: (code, what triggers it, what must not)
    "provider": ("fallback", lambda: (rows(), facts(stt={"differs": [LIE]})), lambda: (rows(), FACTS)),
    "graph": ("fallback", lambda: (rows(), facts(llm={"differs": [GRAPHS]})), lambda: (rows(), FACTS)),
    "silent": ("unreported", lambda: (rows(), facts(tts={"differs": [SILENT]})), lambda: (rows(), FACTS)),
    "by address": (
        "unreported",
        lambda: (rows(), facts(stt={"outside": True})),
        lambda: (rows(), facts(stt={"outside": False})),
    ),
    "no_graphs": (
        "no_graphs",
        lambda: (rows(), facts(llm={"device": "cuda:0", "cuda_graphs": False})),
        lambda: (rows(), facts(llm={"device": "cuda:0", "cuda_graphs": True})),
    ),
    "no_graphs_on_cpu": (
        "no_graphs",
        lambda: (rows(), facts(llm={"device": "cuda:1", "cuda_graphs": False})),
        lambda: (rows(), facts(llm={"device": "cpu", "cuda_graphs": False})),
    ),
    "thinking": ("thinking", lambda: (rows(), {**FACTS, "thinking": True}), lambda: (rows(), FACTS)),
    "thought_once": ("thinking", lambda: (some(1, thought=True), FACTS), lambda: (some(0), FACTS)),
    "underrun": ("underrun", lambda: (some(1, underruns=1), FACTS), lambda: (some(1, underruns=0), FACTS)),
    "cache_missed": (
        "cache_missed",
        lambda: (some(3, tokens={"prompt": 200, "cached": 5}), FACTS),
        lambda: (some(2, tokens={"prompt": 200, "cached": 5}), FACTS),
    ),
    "cache_of_short_prompts": (
        "cache_missed",
        lambda: (rows(tokens={"prompt": 70, "cached": 5}), FACTS),
        lambda: (rows(tokens={"prompt": 60, "cached": 5}), FACTS),
    ),
    "context_full": (
        "context_full",
        lambda: (rows(tokens={"prompt": 2950, "cached": 2940}), FACTS),
        lambda: (rows(tokens={"prompt": 2800, "cached": 2790}), FACTS),
    ),
    "context_grown": ("context_grown", lambda: (growing(160.0), FACTS), lambda: (growing(140.0), FACTS)),
    "drafts_off": (
        "no_drafts", lambda: (waiting(150, 0, 0), NO_DRAFTS), lambda: (waiting(90, 0, 0), NO_DRAFTS)
    ),
    "drafts_dropped": (
        "drafts_dropped",
        lambda: (waiting(150, 2, 2), FACTS),
        lambda: (waiting(150, 2, 1), FACTS),
    ),
    "starving": (
        "starving",
        lambda: (voice_beside(160, 480), FACTS),
        lambda: (voice_beside(130, 480), FACTS),
    ),
    "starving_and_not_a_longer_clause": (
        "starving",
        lambda: (voice_beside(300, 430), FACTS),
        lambda: (voice_beside(300, 400), FACTS),
    ),
    "starving_in_a_benchmark": ("starving", lambda: (benched(120), FACTS), lambda: (benched(180), FACTS)),
    "calls_chained": (
        "calls_chained", lambda: (some(2, llm_calls=2), FACTS), lambda: (some(1, llm_calls=2), FACTS)
    ),
    "answer_long": (
        "answer_long",
        lambda: (rows(audio={"seconds": 10.0}), FACTS),
        lambda: (rows(audio={"seconds": 9.9}), FACTS),
    ),
    "answer_at_limit": (
        "answer_long",
        lambda: (some(4, tokens={"output": 64}), FACTS),
        lambda: (some(3, tokens={"output": 64}), FACTS),
    ),
    # 100 MiB on a processor: 30 s to start and 1 s to read.
    "slow_storage": ("slow_storage", lambda: (loaded(31.1), FACTS), lambda: (loaded(30.9), FACTS)),
    "slow_storage_on_gpu": (
        "slow_storage",
        lambda: (loaded(182.0), facts(llm={"device": "cuda:0"})),
        lambda: (loaded(180.0), facts(llm={"device": "cuda:0"})),
    ),
    "endpoint_dominates": (
        "endpoint_dominates", lambda: (endpoint(300), FACTS), lambda: (endpoint(299), FACTS)
    ),
    "endpoint_beside_slow_engines": (
        "endpoint_dominates", lambda: (endpoint(400, 800), FACTS), lambda: (endpoint(400, 810), FACTS)
    ),
    "cold": ("cold", lambda: (cold(8), FACTS), lambda: (cold(7), FACTS)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_journal_triggers_it_and_the_nearest_does_not(case: str) -> None:
    code, triggers, does_not = CASES[case]
    told = found(*triggers())
    assert code in told
    finding = told[code]
    assert finding["severity"] in SEVERITIES and finding["evidence"]
    assert "{" not in finding["text"] + finding["next"] and finding["next"]
    assert code not in found(*does_not())


def test_nothing_is_found_in_turns_with_nothing_wrong() -> None:
    assert found(rows()) == {}


def test_every_finding_that_has_a_text_has_a_case_here() -> None:
    written = {code.removeprefix("finding_") for code in catalog() if code.startswith("finding_")}
    assert written == {code for code, _, _ in CASES.values()}
    assert len(LOOKS) <= len(written)


def test_a_fallback_comes_first_and_names_what_was_wanted_and_got() -> None:
    told = found(some(1, underruns=2), facts(stt={"differs": [LIE]}))
    assert list(told) == ["fallback", "underrun"]
    assert told["fallback"]["evidence"] == {"engine": "faster_whisper", "stage": "stt", **LIE}
    assert "CPUExecutionProvider instead of cuda:0" in told["fallback"]["text"]
    assert told["fallback"]["next"] == "ondam engines logs faster_whisper"


def test_turns_without_conditions_or_figures_find_nothing_and_break_nothing() -> None:
    bare = [
        {"outcome": "answered", "first_audio_ms": 500.0, "started_at": str(n), "settled": True}
        for n in range(30)
    ]
    told = report(map(figures, bare), {}, Steadiness(5, 0.1)).as_json("ko")
    assert told["groups"][0]["findings"] == []
