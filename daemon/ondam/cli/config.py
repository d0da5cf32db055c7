"""``ondam config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click

from ondam.cli.terminal import as_json, daemon, print_json, say
from ondam.errors import ConfigError, ModelError
from ondam.places import places


@click.group("config")
def command() -> None:
    """Check and show the configuration."""


@command.command()
@as_json
def check(json_wanted: bool) -> None:
    """Report every problem of config.toml at once, with the nearest valid name.

    Also engines that do not exist, addresses that are none, and what this machine cannot run. The machine's
    file (/etc/ondam/config.toml) lies below your own; with both, each problem says where it stands.
    """
    from ondam.app import planned
    from ondam.config import laid, over
    from ondam.owner import is_anothers, may_read, name_of

    here = places()
    path = here.config_file
    layers = laid(path)
    if here.group is not None and is_anothers(daemons := here.state.parent):
        for layer in layers:
            if not may_read(layer.file, daemons):
                raise ConfigError("file_closed_to_daemon", path=layer.file, user=name_of(daemons))
    with suppress(ModelError):  # weights that are not here yet are no fault of the configuration
        planned(over(layers), here)
    outdated = [str(layer.file) for layer in layers if layer.outdated]
    if json_wanted:
        files = [str(layer.file) for layer in layers]
        print_json(
            {"path": str(path), "exists": path.exists(), "ok": True, "files": files, "outdated": outdated}
        )
        return
    for layer in layers:
        click.echo(say("cli_config_fine", path=layer.file))
    if not layers:
        click.echo(say("cli_config_none", path=path))
    for file in outdated:
        click.echo(say("cli_config_outdated", path=file))


@command.command()
@click.option("--origin", is_flag=True, help="With the file and the line that each value comes from.")
@as_json
def show(origin: bool, json_wanted: bool) -> None:
    """Print every value in force, as TOML; what differs from the shipped value is marked.

    With --origin and --json: {KEY: {"value", "file", "line"}}, both null for a shipped value.
    """
    from ondam.config import defaults, laid, over
    from ondam.config.layers import placed

    layers = laid(places().config_file)
    values = over(layers).model_dump(by_alias=True)
    if json_wanted and not origin:
        print_json(values)
        return
    found = {key: placed(layers, key) for key, _ in _flat(values)}
    if json_wanted:
        print_json(
            {
                key: {"value": value, "file": str(at.file) if at else None, "line": at.line if at else None}
                for key, value in _flat(values)
                for at in (found[key],)
            }
        )
        return
    shipped = dict(_flat(defaults()))
    for key, value in _flat(values):
        if origin:
            mark = f"  # {found[key] or 'default'}"
        else:
            mark = "" if key in shipped and shipped[key] == value else "  # changed"
        click.echo(f"{key} = {_toml(value)}{mark}")


@command.command()
@as_json
def path(json_wanted: bool) -> None:
    """Print where config.toml is looked for."""
    file = places().config_file
    if json_wanted:
        print_json({"path": str(file), "exists": file.exists()})
    else:
        click.echo(file)


@command.command()
@as_json
def migrate(json_wanted: bool) -> None:
    """Write config.toml as this version of Ondam writes it, if an earlier one wrote it.

    Until then it is read all the same. The file as it was stays beside it (config.toml.schema-N), comments
    stay, and a file of a later Ondam is refused. With --json {"path", "kept"}; kept is null where there was
    nothing to do.
    """
    from ondam.deploy.migrate import migrate_config
    from ondam.errors import ConfigError

    file = places().config_file
    if not file.exists():
        raise ConfigError("file_missing", path=file)
    kept = migrate_config(file)
    if json_wanted:
        print_json({"path": str(file), "kept": str(kept) if kept else None})
    else:
        click.echo(say("cli_config_migrated" if kept else "cli_config_current", path=file, kept=kept))


@command.command()
@as_json
def reload(json_wanted: bool) -> None:
    """Let the running daemon read config.toml again; what needs a restart is named.

    A file with problems is refused with all of them, and what was in force stays. With --json {"applied",
    "needs_restart"}, both lists of keys.
    """
    told = daemon(lambda client: client.reload())
    if json_wanted:
        print_json(told)
        return
    if told["applied"]:
        click.echo(say("cli_config_applied", keys=", ".join(told["applied"])))
    if told["needs_restart"]:
        click.echo(say("cli_config_needs_restart", keys=", ".join(told["needs_restart"])))
    if not told["applied"] and not told["needs_restart"]:
        click.echo(say("cli_config_nothing_new"))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _toml(value: Any) -> str:
    """JSON's strings, numbers, booleans and arrays are TOML's too; tables do not come here."""
    return json.dumps(value, ensure_ascii=False)
