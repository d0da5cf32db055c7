"""Every `ondam …` that a message or a page tells somebody to type exists, with its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from ondam.cli import command as ondam
from ondam.messages import catalog

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "README.ko.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

IN_FRONT = {"sudo", "$", "→", "env", "exec", "time"}
"""Words that may stand before a command."""

SEPARATES = re.compile(r"&&|\|\||[;\n]|\s\|\s|\s{2,}|→")
"""After two spaces stands what a command does, or the next one."""

PLACEHOLDER = re.compile(r"[A-Z_0-9]{2,}|[A-Z]|.*[…{}\[\]<>가-힣].*")
"""What stands for something else in an example: NAME, FILE…, {path}, [OPTIONS]."""


def typed(code: str) -> Iterator[list[str]]:
    """The arguments of every ``ondam`` in a piece of shell."""
    for segment in SEPARATES.split(code):
        try:
            words = shlex.split(segment, comments=True)
        except ValueError:  # an apostrophe of prose
            words = segment.split()
        while words and (words[0] in IN_FRONT or re.match(r"[A-Z_]+=", words[0])):
            words.pop(0)
            if words[:1] == ["-u"]:
                del words[:2]
        if words[:1] == ["ondam"]:
            stop = next((n for n, word in enumerate(words) if word in {"|", ">", "2>", "<"}), len(words))
            yield words[1:stop]


def spans(text: str) -> Iterator[str]:
    """Code blocks of a page, and code between backticks."""
    yield from re.findall(r"(?ms)^```[a-z]*\n(.*?)^```", text)
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    # A span goes on over the end of a line, and not over the end of a paragraph.
    yield from (re.sub(r"\s*\n\s*", " ", found) for found in re.findall(r"`((?:[^`\n]|\n(?!\n))+)`", text))


def wrong(arguments: Sequence[str]) -> str | None:
    """What cannot be typed of ``ondam ARGUMENTS``; None: nothing."""
    context = click.Context(ondam, info_name="ondam")
    rest = list(arguments)
    at: click.Command = ondam
    while True:
        if {"--help", "-h"} & set(rest[:1]):
            return None
        try:
            given, left, _ = at.make_parser(context).parse_args(list(rest))
        except click.BadOptionUsage as error:
            # One that is named without a value is named all the same.
            return None if "requires" in error.format_message() else error.format_message()
        except click.UsageError as error:
            return error.format_message()
        if problem := _choice(at, given):
            return problem
        if not isinstance(at, click.Group):
            extra = [word for word in left if not PLACEHOLDER.fullmatch(word)]
            return f"{at.name} takes no {extra[0]}" if extra else None
        if not left or PLACEHOLDER.fullmatch(left[0]) or left[0] == "…":
            return None
        # "list|remove" names both; those that follow are of the last.
        for name in left[0].split("|"):
            found = at.get_command(context, name)
            if found is None:
                return f"there is no {context.command_path} {name}"
        assert found is not None
        context = click.Context(found, info_name=found.name, parent=context)
        at, rest = found, left[1:]


def _choice(command: click.Command, given: dict[str, Any]) -> str | None:
    for parameter in command.params:
        if not isinstance(parameter.type, click.Choice):
            continue
        value = given.get(parameter.name or "")
        for one in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(one, str) or PLACEHOLDER.fullmatch(one):
                continue
            for word in one.split("|"):
                if word not in parameter.type.choices:
                    return f"{parameter.opts[0]} cannot be {word}"
    return None


def of_message(text: str) -> Iterator[list[str]]:
    """Commands of a message: between backticks, or from ``ondam`` to where the sentence goes on."""
    yield from (arguments for span in re.findall(r"`([^`]+)`", text) for arguments in typed(span))
    bare = re.sub(r"`[^`]+`", "", text)
    for begun in re.finditer(r"(?<![\w./\"=-])ondam ", bare):
        yield from _until_prose(bare[begun.end() :].split())


def _until_prose(words: Sequence[str]) -> Iterator[list[str]]:
    """The words that belong to the command: names of commands, then options."""
    taken: list[str] = []
    at: click.Command | None = ondam
    if words[:1] in (["and"], ["is"]):  # the user or the group of that name
        return
    for word in words:
        plain = re.match(r"[\w|=./~{}:-]*[\w}…]", word, re.ASCII)
        if plain is None:
            break
        name, ends = plain[0], plain[0] != word
        if isinstance(at, click.Group) and not name.startswith("-"):
            if not re.fullmatch("[a-z|]+", name):
                break
            taken.append(name)
            at = at.get_command(click.Context(at), name.split("|")[0])
        elif name.startswith("--"):
            taken.append(name)
            at = None if isinstance(at, click.Group) and taken[:-1] else at
        elif not taken:
            break
        if ends or (at is None and not name.startswith("--")):
            break
    if taken:
        yield taken


def texts(entry: object) -> Iterator[str]:
    if isinstance(entry, dict):
        for inner in entry.values():
            yield from texts(inner)
    else:
        yield str(entry)


NAMED = [
    (code, arguments)
    for code, entry in sorted(catalog().items())
    for text in dict.fromkeys(texts(entry))
    for arguments in of_message(text)
]


def test_the_search_finds_what_it_is_for() -> None:
    assert len(NAMED) > 150
    sentence = "먼저 ondam models verify를 실행하세요. Then ondam down, or `sudo -u ondam ondam --system up`."
    assert list(of_message(sentence)) == [["--system", "up"], ["models", "verify"], ["down"]]
    assert list(of_message('members of "ondam" and ondam-admin; systemctl start ondam.service')) == []
    told = 'ONDAM_HOME=/a ondam plan --facts > facts.json && ondam ask "…"  ondam turns  # all of it'
    assert list(typed(told)) == [["plan", "--facts"], ["ask", "…"], ["turns"]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("bench --fast", "No such option '--fast'"),
        ("bundle unpack", "there is no ondam bundle unpack"),
        ("privacy list|delete", "there is no ondam privacy delete"),
        ("demo --language fr", "--language cannot be fr"),
        ("bundle create --signed-by me", "No such option '--signed-by'"),
        ("status now", "status takes no now"),
        ("--loud status", "No such option '--loud'"),
    ],
)
def test_what_cannot_be_typed_is_found(arguments: str, problem: str) -> None:
    assert problem in (wrong(arguments.split()) or "")


def test_every_command_in_a_message_exists_with_its_options() -> None:
    problems = [(code, " ".join(named), said) for code, named in NAMED if (said := wrong(named))]
    assert problems == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_exists_with_its_options(page: Path) -> None:
    found = [named for span in spans(page.read_text("utf-8")) for named in typed(span)]
    assert [(" ".join(named), said) for named in found if (said := wrong(named))] == []
