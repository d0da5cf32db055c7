"""``ondam config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click

from ondam.cli.terminal import as_json, print_json, say
from ondam.errors import ModelError
from ondam.places import places


@click.group("config")
def command() -> None:
    """Check and show the configuration."""


@command.command()
@as_json
def check(json_wanted: bool) -> None:
    """Report every problem of config.toml at once, with the nearest valid name.

    Also engines that do not exist, addresses that are none, and what this machine cannot run.
    """
    from ondam.app import planned
    from ondam.config import load

    here = places()
    path = here.config_file
    with suppress(ModelError):  # weights that are not here yet are no fault of the configuration
        planned(load(path), here)
    if json_wanted:
        print_json({"path": str(path), "exists": path.exists(), "ok": True})
    else:
        click.echo(say("cli_config_fine" if path.exists() else "cli_config_none", path=path))


@command.command()
@as_json
def show(json_wanted: bool) -> None:
    """Print every value in force, as TOML; what differs from the shipped value is marked."""
    from ondam.config import defaults, load

    values = load(places().config_file).model_dump(by_alias=True)
    if json_wanted:
        print_json(values)
        return
    shipped = dict(_flat(defaults()))
    for key, value in _flat(values):
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


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _toml(value: Any) -> str:
    """JSON's strings, numbers, booleans and arrays are TOML's too; tables do not come here."""
    return json.dumps(value, ensure_ascii=False)
