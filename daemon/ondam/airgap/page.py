"""The proof as a page for an auditor, in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ondam.airgap.attempts import Attempt
from ondam.airgap.proof import Proof
from ondam.messages import catalog, message, text
from ondam.types import Language

MOST_FILES = 60
"""Files that are listed one by one; more are counted."""


def page(proof: Proof, language: Language) -> str:
    """All of ``proof``."""
    return "\n".join(_lines(proof, language)) + "\n"


def _lines(proof: Proof, language: Language) -> Iterator[str]:
    def say(code: str, /, **facts: object) -> str:
        return text(code, language, **facts)

    def named(prefix: str, value: str) -> str:
        return say(prefix + value) if prefix + value in catalog() else value

    def kind(one: Attempt) -> str:
        return named("airgap_verdict_", "configured") if one.verdict == "configured" else way(one)

    def way(one: Attempt) -> str:
        return named("airgap_way_", one.way)

    yield f"# {say('airgap_title')}"
    yield ""
    for code in proof.problems or ("airgap_holds",):
        told = message(code, language, count=len(proof.tried))
        yield f"**{told.text}**" + (f" → {told.next}" if told.next else "")
        yield ""
    yield from _table(
        (say("airgap_what"), say("airgap_value")),
        [
            (say("airgap_at"), proof.at),
            (say("airgap_repeat"), f"`{proof.command}`"),
            *((name, value) for name, value in proof.versions.items()),
            (say("airgap_user"), proof.user),
            (say("airgap_around"), named("airgap_around_", proof.around) + f" (`{proof.means}`)"),
            (say("airgap_tracer"), proof.tracer or say("airgap_nothing")),
            (say("airgap_watched"), f"{proof.watched_s:g} s"),
            *(
                (say("airgap_turn"), f"{turn['outcome']}, {turn['first_audio_ms']} ms")
                for turn in proof.turns
            ),
        ],
    )
    yield f"## {say('airgap_attempts')}"
    yield ""
    if proof.tracer is None:
        yield say("airgap_not_seen")
        yield ""
    elif not proof.tried:
        yield say("airgap_none")
        yield ""
    yield from _table(
        tuple(
            say(f"airgap_{word}")
            for word in ("process", "call", "family", "address", "way", "outcome", "times")
        ),
        [
            (
                one.process,
                one.call,
                one.family,
                one.address,
                named("airgap_way_", one.way),
                one.outcome,
                str(one.times),
            )
            for one in proof.tried
        ],
    )
    rest = [one for one in proof.attempts if one.verdict != "attempt"]
    if rest:
        yield f"### {say('airgap_noted')}"
        yield ""
        yield from _table(
            tuple(say(f"airgap_{word}") for word in ("process", "call", "family", "address", "way", "times")),
            [
                (one.process, one.call, one.family, one.address, kind(one), str(one.times))
                for one in rest
            ],
        )  # fmt: skip
    yield f"## {say('airgap_engines')}"
    yield ""
    yield from _table(
        tuple(say(f"airgap_{word}") for word in ("engine", "model", "isolation", "remains", "versions")),
        [
            (
                f"{one.name} ({one.stage})",
                one.model or "–",
                say("airgap_by_address") if one.outside else str(one.isolation or say("airgap_nothing")),
                ", ".join(named("airgap_remains_", what) for what in one.isolation.remains) or "–"
                if one.isolation
                else named("airgap_remains_", "network"),
                ", ".join(f"{name} {version}" for name, version in one.versions.items()),
            )
            for one in proof.engines
        ],
    )
    yield f"## {say('airgap_listening')}"
    yield ""
    yield from _table(
        tuple(say(f"airgap_{word}") for word in ("process", "family", "address", "rights")),
        [
            (
                one.process,
                one.family,
                one.address,
                say("airgap_listens_configured")
                if one.configured
                else "–"
                if one.mode is None
                else f"{one.mode:04o}",
            )
            for one in proof.listening
        ],
    )
    yield f"## {say('airgap_files')}"
    yield ""
    yield say("airgap_files_how")
    yield ""
    shown = proof.opened[:MOST_FILES]
    yield from _table(
        tuple(say(f"airgap_{word}") for word in ("process", "path", "done")),
        [
            (one.process, one.path, say("airgap_written_to" if one.written else "airgap_read"))
            for one in shown
        ],
    )
    if len(proof.opened) > MOST_FILES:
        yield say("airgap_more_files", count=len(proof.opened) - MOST_FILES)
        yield ""
    yield f"## {say('airgap_environments')}"
    yield ""
    for engine in proof.engines:
        if engine.environ:
            yield f"### {engine.name}"
            yield ""
            yield "```"
            yield from (f"{name}={value}" for name, value in engine.environ.items())
            yield "```"
            yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    kept = [[_cell(cell) for cell in row] for row in rows]
    if kept:
        yield f"| {' | '.join(head)} |"
        yield "|" + "---|" * len(head)
        yield from (f"| {' | '.join(row)} |" for row in kept)
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or "–"
