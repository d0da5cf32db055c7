"""``ondam privacy``: what is kept where, and away with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import click

from ondam.cli.terminal import as_json, columns, print_json, say
from ondam.errors import ConfigError, MigrationError
from ondam.messages import reader_language

if TYPE_CHECKING:
    from ondam.config import Config
    from ondam.places import Places
    from ondam.privacy import Kept


@click.group("privacy")
def command() -> None:
    """What is kept on this machine, for how long, and away with it."""


@command.command("list")
@as_json
def list_kept(json_wanted: bool) -> None:
    """Everything that Ondam keeps: where, how much, since when, for how long, and what is in it."""
    from ondam.places import places
    from ondam.privacy import inventory

    here = places()
    found = inventory(_config(here), here)
    if json_wanted:
        print_json({"kept": [_as_json(kept) for kept in found]})
        return
    head = [say(f"privacy_column_{name}") for name in ("kind", "holds", "size", "since", "stays", "where")]
    for line in columns([head, *(_row(kept) for kept in found if kept.files or kept.kind != "other")], [2]):
        click.echo(line)
    words = [kept for kept in found if kept.kind in {"text", "audio"}]
    if not any(kept.wanted or kept.files for kept in words):
        click.echo(say("privacy_timings_only"))
    click.echo(say("privacy_elsewhere"))


@command.command("remove")
@click.argument("kinds", nargs=-1, required=True, metavar="KIND...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def remove_kept(kinds: Sequence[str], yes: bool, json_wanted: bool) -> int:
    """Delete what is kept of each KIND, as `ondam privacy list` names them.

    "all": all that came of being used (text, audio, copies, audit, journal, logs, measured). What Ondam runs
    with (config, models, engines, caches) goes only where it is named. No daemon may run meanwhile.
    """
    from ondam import privacy
    from ondam.places import places

    here = places()
    config = _config(here)
    removable = (*privacy.OF_USE, *privacy.OF_PROGRAM)
    wanted: dict[privacy.Kind, None] = {}
    for given in kinds:
        if given == "all":
            wanted |= dict.fromkeys(privacy.OF_USE)
        elif given in removable:
            wanted |= {kind: None for kind in get_args(privacy.Kind) if kind == given}
        else:
            known = ", ".join(("all", *removable))
            raise click.UsageError(
                say("privacy_no_kind", given=given, known=known), click.get_current_context()
            )
    found = [kept for kept in privacy.inventory(config, here) if kept.kind in wanted and kept.files]
    if found and not yes:
        for line in columns([_row(kept) for kept in found], [2]):
            click.echo(line, err=True)
        if not click.confirm(say("privacy_sure"), err=True):
            return 1
    gone: list[str] = []
    freed = privacy.remove(wanted, config, here, lambda path: gone.append(str(path)))
    if json_wanted:
        print_json({"removed": list(wanted), "files": gone, "bytes": freed})
    else:
        click.echo(say("privacy_removed", count=len(gone), size=_size(freed)))
    return 0


def _config(here: Places) -> Config:
    """As configured; a broken config.toml keeps nobody from deleting what is kept."""
    from ondam.config import load

    try:
        return load(here.config_file)
    except (ConfigError, MigrationError) as error:
        click.echo(error.message(reader_language()).text, err=True)
        click.echo(say("privacy_config_unread"), err=True)
        return load(None)


def _as_json(kept: Kept) -> dict[str, object]:
    return {
        "kind": kept.kind,
        "paths": [str(path) for path in kept.paths],
        "holds": kept.holds,
        "files": kept.files,
        "bytes": kept.bytes,
        "since": kept.since,
        "days": kept.days,
        "most_bytes": kept.most_bytes,
        "written": kept.wanted,
    }


def _row(kept: Kept) -> list[str]:
    stays = say("privacy_until_removed") if kept.days is None else say("privacy_days", days=kept.days)
    if kept.kind == "runtime":
        stays = say("privacy_until_end")
    elif kept.kind == "logs":
        stays = say("privacy_turned_over")
    if not kept.wanted:
        stays = say("privacy_off") if not kept.files else say("privacy_off_but", stays=stays)
    return [
        kept.kind,
        say(f"privacy_holds_{kept.holds}"),
        _size(kept.bytes) if kept.files else "–",
        (kept.since or "–")[:10],
        stays,
        str(kept.paths[0]) if kept.paths else "–",
    ]


def _size(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
