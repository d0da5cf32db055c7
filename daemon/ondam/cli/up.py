"""``ondam up``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ondam.errors import ConfigError, ControlError


@click.command("up")
@click.option("--microphone", metavar="SPEC", help='A device, "default", "none", or wav:/path.')
@click.option("--speaker", metavar="SPEC", help='A device, "default", "none", or wav:/path to record to.')
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of config.toml, for this run."
)
@click.option("--config", "file", type=click.Path(path_type=Path), help="Another config.toml.")
def command(microphone: str | None, speaker: str | None, settings: Sequence[str], file: Path | None) -> int:
    """Run the daemon in the foreground until it is asked to end (Ctrl-C, SIGTERM, `ondam down`)."""
    from ondam import app
    from ondam.config import load
    from ondam.owner import is_anothers, name_of
    from ondam.places import places

    if file is not None and not file.exists():
        raise ConfigError("cli_file_missing", path=file)
    overrides = laid_over(settings)
    audio = {
        name: spec for name, spec in (("microphone", microphone), ("speaker", speaker)) if spec is not None
    }
    if audio:
        overrides["audio"] = {**overrides.get("audio", {}), **audio}
    here = places()
    if here.group is not None and is_anothers(here.state.parent):
        raise ControlError("daemon_not_roots", user=name_of(here.state.parent))
    read = partial(load, file or here.config_file, overrides)
    return app.run(read(), here, file, read)


def laid_over(settings: Sequence[str]) -> dict[str, Any]:
    """``KEY=VALUE`` with dotted keys as nested tables. A value is TOML, or else the text itself."""
    overrides: dict[str, Any] = {}
    for given in settings:
        key, equals, value = given.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise ConfigError("cli_set_broken", given=given)
        table = overrides
        for part in parts[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError("cli_set_broken", given=given)
        table[parts[-1]] = _value(value.strip())
    return overrides


def _value(written: str) -> Any:
    """Any: whatever TOML can say; the configuration's schema judges it."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        # --set llm.engine=llama_cpp: nobody wants to quote quotes for the shell.
        return written
