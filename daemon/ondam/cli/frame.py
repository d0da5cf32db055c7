"""The frame around every command: subcommands loaded late, errors told to a person."""

from __future__ import annotations

import difflib
import errno
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import click

INTERRUPTED = 130
"""128 + SIGINT, as shells say it."""

NO_FAULT_OF_OURS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO}
"""Of files: what whoever keeps the machine can mend."""

USAGE = 2

FAILED = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is, and its line in ``ondam --help`` (shown without loading it)."""

    module: str
    summary: str


class LazyGroup(click.Group):
    """Imports a subcommand's module when it is run: ``ondam --help`` loads none of them."""

    def __init__(self, *, entries: Mapping[str, Entry], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own keywords, passed through
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table, which is the order a newcomer meets them."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now."""
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        found = import_module(entry.module).command
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """With the nearest name where there is none of that name."""
        if args and args[0] not in self._entries and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self._entries, n=1)
            # Late: --help is quick because it reads no messages.
            from ondam.messages import reader_language, text

            code = "cli_no_command_near" if near else "cli_no_command"
            ctx.fail(text(code, reader_language(), name=args[0], near="".join(near)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table, without loading anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self._entries.items()])


def run(group: click.Group, arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code. Nothing but help and answers goes to stdout."""
    try:
        return _run(group, arguments)
    except BrokenPipeError:
        # Whoever was to read it has left (`| head`), perhaps before an error could be told.
        _let_go_of_output()
        return FAILED


def _let_go_of_output() -> None:
    """What is still buffered must not fail once more when Python ends, with a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is None:
                continue
            try:
                stream.flush()
            except OSError:
                os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


def _run(group: click.Group, arguments: Sequence[str]) -> int:
    wants_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        answered = group.main(list(arguments), prog_name="ondam", standalone_mode=False)
    except click.UsageError as error:
        return _usage(error, wants_json)
    except click.ClickException as error:
        return _tell("cli_usage", FAILED, wants_json, problem=error.format_message(), help="ondam --help")
    except (click.Abort, KeyboardInterrupt):
        # Somebody pressed Ctrl-C and knows it.
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last stop before a person: no traceback, and never silence
        return _failed(error, arguments, wants_json)
    return answered if isinstance(answered, int) else 0


def _failed(error: Exception, arguments: Sequence[str], wants_json: bool) -> int:
    # Late: --help and --version never get here, and load nothing of this.
    from ondam.errors import OndamError

    if os.environ.get("ONDAM_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, OndamError):
        return _tell(error.code, error.exit_code, wants_json, **error.facts)
    if isinstance(error, OSError) and isinstance(error.filename, str) and error.errno in NO_FAULT_OF_OURS:
        return _of_a_file(error, error.filename, arguments, wants_json)
    return _tell("cli_unexpected", FAILED, wants_json, kind=type(error).__name__, reason=error)


def _of_a_file(error: OSError, path: str, arguments: Sequence[str], wants_json: bool) -> int:
    import shlex
    from pathlib import Path

    from ondam.places import GROUP, MACHINE_STATE

    facts = {"path": path, "typed": shlex.quote(path), "reason": error.strerror or error}
    if error.errno != errno.EACCES or not Path(path).is_relative_to(MACHINE_STATE):
        return _tell("cli_file_closed", FAILED, wants_json, **facts)
    command = shlex.join(["sudo", "-u", GROUP, "ondam", *arguments])
    return _tell("cli_file_of_the_system", FAILED, wants_json, **facts, user=GROUP, command=command)


def _usage(error: click.UsageError, wants_json: bool) -> int:
    where = error.ctx.command_path if error.ctx else "ondam"
    return _tell("cli_usage", USAGE, wants_json, problem=error.format_message(), help=f"{where} --help")


def _tell(code: str, exit_code: int, wants_json: bool, /, **facts: object) -> int:
    from ondam.messages import message, reader_language

    told = message(code, reader_language(), **facts)
    if wants_json:
        click.echo(
            json.dumps({"error": {"code": code, "text": told.text, "next": told.next}}, ensure_ascii=False)
        )
        return exit_code
    click.echo(told.text, err=True)
    if told.next:
        click.echo(f"→ {told.next}", err=True)
    return exit_code
