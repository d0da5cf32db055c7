"""Every code that is told has a text, and every text is told by somebody."""

from __future__ import annotations

import ast
import os
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ondam import errors
from ondam.messages import Message, Phrase, Phrases, catalog, message, typed
from ondam.types import Language

ROOT = Path(__file__).parents[2]
TELLERS = {
    *(kind.__name__ for kind in errors.OndamError.__subclasses__()),
    *("OndamError", "Fault", "Phrase", "text", "message", "say", "tell", "_tell", "_refuse"),
}
"""What takes a code as its first argument."""

PREFIXED = {"named": "", "_for_user": "_"}
"""What takes the beginning of a code, and what it puts between that and the rest."""


@cache
def trees() -> list[tuple[Path, ast.AST]]:
    files = [*(ROOT / "daemon").rglob("*.py"), *(ROOT / "ui").rglob("*.py")]
    return [(file, ast.parse(file.read_text("utf-8"))) for file in files]


def told() -> Iterator[tuple[Path, str]]:
    """Literal first arguments of whatever tells a person something."""
    for file, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            first = node.args[0]
            if called(node) in TELLERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield file, first.value


def built() -> Iterator[re.Pattern[str]]:
    """What f-strings that may be codes can become, and prefixes given to ``named``."""
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else None for p in node.values]
                fixed = "".join(str(p) for p in parts if p is not None)
                if re.fullmatch(r"_?[a-z_]*[a-z]{2}_?[a-z_]*", fixed) and "_" in fixed:
                    yield re.compile("".join("[a-z0-9_]+" if p is None else re.escape(str(p)) for p in parts))
            elif isinstance(node, ast.Call) and node.args and (name := called(node)) in PREFIXED:
                first = node.args[0]
                if isinstance(first, ast.Constant) and first.value:
                    yield re.compile(re.escape(str(first.value)) + PREFIXED[name] + "[a-z_]+")


def in_pages() -> tuple[set[str], set[re.Pattern[str]]]:
    """The codes that the panel's scripts name, and what those that they put together can become."""
    names: set[str] = set()
    patterns: set[re.Pattern[str]] = set()
    for script in (ROOT / "ui").rglob("*.js"):
        code = script.read_text("utf-8")
        names.update(re.findall(r"[\"'`]([a-z]+_[a-z0-9_]*[a-z0-9])[\"'`]", code))
        begun = re.findall(r"`([a-z_]+_)\$\{[^}]*\}`", code) + re.findall(r"named\(\"([a-z_]+_)\"", code)
        patterns.update(re.compile(re.escape(part) + "[a-z0-9_]+") for part in begun)
    return names, patterns


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_the_searches_find_what_they_are_for() -> None:
    codes = {code for _, code in told()}
    assert {"config_problems", "control_bad_request", "microphone_silent", "cli_usage"} <= codes
    patterns = list(built())
    for code in ("stage_stt", "cli_state_listening", "microphone_lost", "excuse_llm", "stt_down"):
        assert any(pattern.fullmatch(code) for pattern in patterns), code
    assert not any(pattern.fullmatch("heard_nothing") for pattern in patterns)


def test_every_code_that_is_told_has_a_text() -> None:
    assert {(file.name, code) for file, code in told() if code not in catalog()} == set()


def test_every_text_that_the_panel_shows_exists() -> None:
    codes, patterns = in_pages()
    assert {code for code in codes if code.startswith("panel_")} - set(catalog()) == set()
    assert {p.pattern for p in patterns if not any(map(p.fullmatch, catalog()))} == set()


def test_every_text_is_told_by_somebody() -> None:
    literals = {
        node.value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    named, put_together = in_pages()
    literals |= named
    patterns = set(built()) | put_together
    unused = {
        code
        for code in catalog()
        if code not in literals and not any(pattern.fullmatch(code) for pattern in patterns)
    }
    assert unused == set()


NOTHING_NEXT = {
    # An answer to a program: what is to be done about it is its author's, or to ask again.
    *("control_bad_request", "control_body_too_slow", "control_reader_too_slow", "control_too_large"),
    *("control_unknown_call", "internal_fault", "no_answer", "switch_turn_goes_on"),
    # It names the file, line, key or word that is wrong and what was expected: that is what is to be mended.
    *("bench_no_clips", "cli_file_unreadable", "cli_spec_no_name", "cli_spec_twice", "config_problems"),
    *("engine_name_differs", "file_differs_from_card", "file_missing", "id_malformed", "toml_broken"),
    *("import_missing", "import_not_whisper", "import_unknown", "import_unreadable", "wheel_lacks_member"),
    *("quality_list_line", "quality_lists", "quality_no_transcript", "quality_no_words"),
    *("quality_text_unreadable", "sound_file_missing", "sound_file_rate", "sound_file_unreadable"),
    "sound_file_unwritable",
    # What was found out, or a fault of ours: nothing that a person types changes it.
    *("bench_stub_broken", "bench_stubs_did_not_start", "cold_slow", "excuse_tts"),
    *("quality_voice_silent", "report_no_turns"),
}
"""Errors that say nothing of what to do next, and why that is right."""


def test_every_error_says_what_to_do_next_or_why_it_does_not() -> None:
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.OndamError)
    }
    raised = {
        part.value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in kinds and node.args
        for part in ast.walk(node.args[0])  # a code may be one of two
        if isinstance(part, ast.Constant) and part.value in catalog()
    }
    assert {code for code in raised if "next" not in catalog()[code]} - NOTHING_NEXT == set()
    assert not [code for code in NOTHING_NEXT if "next" in catalog()[code]]


@pytest.mark.parametrize("code", sorted(catalog()))
def test_both_languages_are_there_and_tell_the_same_facts(code: str) -> None:
    entry = catalog()[code]
    assert entry["en"] and entry["ko"]
    assert facts(entry["en"]) == facts(entry["ko"])
    after = entry.get("next", "")
    assert isinstance(after, str) or (after["en"] and after["ko"])


@pytest.mark.parametrize("code", sorted(code for code, entry in catalog().items() if "next_root" in entry))
def test_what_root_is_told_to_do_is_there_in_both_languages(code: str) -> None:
    entry = catalog()[code]
    after = entry["next_root"]
    assert "next" in entry and (isinstance(after, str) or (after["en"] and after["ko"]))


class Anything:
    """A fact that can be written in every format."""

    def __format__(self, _how: str) -> str:
        return "…"


def names(entry: object) -> set[str]:
    """Of all facts of an entry."""
    if isinstance(entry, str):
        return facts(entry)
    assert isinstance(entry, dict)
    return set().union(*map(names, entry.values()))


NEVER_TOLD_TO_ROOT = {"control_not_permitted"}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_nobody_who_is_root_is_told_to_become_root(
    monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    def advised(code: str) -> str:
        told = message(code, language, **dict.fromkeys(names(catalog()[code]), Anything()))
        return f"{told.text} {told.next}"

    become = re.compile(r"\bsudo [a-z]|\bas root\b|root로")
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert sum(bool(become.search(advised(code))) for code in catalog()) > 15, "everybody else is"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert {code for code in catalog() if become.search(advised(code))} == NEVER_TOLD_TO_ROOT


def test_a_shell_that_is_roots_gets_the_bare_command_and_one_that_used_sudo_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert message("airgap_untraced", "en").next == "apt install strace"
    assert typed("sudo -u ondam ondam --system models add") == "sudo -u ondam ondam --system models add"
    said = message("bundle_root_unwritable", "en", path="/sudo make me a sandwich", reason="Read-only")
    assert said.text == "/sudo make me a sandwich cannot be written: Read-only."
    assert said.next == "See whether its disk is full or read-only, or name another folder: --root DIR"
    monkeypatch.setenv("SUDO_UID", "1000")
    assert message("airgap_untraced", "en").next == "sudo apt install strace"
    assert message("bundle_root_unwritable", "en").next == said.next, (
        "the command itself was root's all the same"
    )


def facts(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_a_phrase_is_told_in_the_language_of_the_text_around_it() -> None:
    unknown = Phrase("problem_unknown_key", key="lm", near=Phrase("near_name", name="llm"))
    problems = Phrases((unknown, Phrase("problem_missing", key="a")))
    told = message("config_problems", "ko", origin="/a", problems=problems)
    assert told == Message(
        "config_problems",
        "/a 파일을 사용할 수 없습니다:\n"
        '  lm: 알 수 없는 키입니다. "llm"을(를) 찾으시나요?\n'
        "  a: 값이 없습니다",
        "",
    )
    assert str(problems) == '  lm: unknown key; did you mean "llm"?\n  a: missing'
    in_a_line = Phrases(problems.phrases[1:] * 2, between="; ")
    assert in_a_line.in_language("en") == "a: missing; a: missing"
