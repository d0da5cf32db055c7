"""``ondam service``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ondam.cli.terminal import as_json, print_json, say
from ondam.messages import Phrase, message, reader_language

if TYPE_CHECKING:
    from ondam.deploy.service import Service

system_option = click.option(
    "--system", is_flag=True, help="The system's daemon, for boxes without a desktop; else your own."
)


@click.group("service")
def command() -> None:
    """Let systemd start Ondam, and start it again when it breaks down.

    Your own service is for desktops: sound belongs to your session. With --system it is the machine's: as the
    user "ondam", confined, with ALSA, for boxes that nobody logs in to. See docs/service.md.
    """


@command.command()
@system_option
@click.option("--start/--no-start", default=True, help="Start it now, or only with the next login or boot.")
@click.option("--linger", is_flag=True, help="Let your services go on when you log out (loginctl).")
@click.option("--print", "printed", is_flag=True, help="Print the unit and change nothing.")
@as_json
def install(system: bool, start: bool, linger: bool, printed: bool, json_wanted: bool) -> None:
    """Write the unit, let systemd start it with your login (--system: with the machine), and start it.

    Again after an upgrade is harmless: the unit is written anew. One that is not ours is left alone. With
    --json {"unit", "program", "started", "told": [{"text", "next"}]}.
    """
    from ondam.deploy.service import program

    service, runs = _service(system), program()
    if printed:
        click.echo(service.text(runs), nl=False)
        return
    done = service.install(runs, start=start, linger=linger)
    if json_wanted:
        told = [_told(phrase) for phrase in done.told]
        print_json({"unit": str(done.unit), "program": str(runs), "started": done.started, "told": told})
        return
    click.echo(say("service_installed", path=done.unit, program=runs))
    if done.started:
        click.echo(say("service_starts", command=f"ondam service status{' --system' if system else ''}"))
    for phrase in done.told:
        told_now = _told(phrase)
        click.echo(told_now["text"])
        click.echo(f"→ {told_now['next']}")


@command.command()
@system_option
@as_json
def uninstall(system: bool, json_wanted: bool) -> None:
    """Stop it and take the unit away. Configuration, models and what was stored stay.

    With --json {"unit"}.
    """
    done = _service(system).uninstall()
    if json_wanted:
        print_json({"unit": str(done.unit)})
    else:
        click.echo(say("service_uninstalled", path=done.unit))


@command.command()
@system_option
@as_json
def status(system: bool, json_wanted: bool) -> int:
    """What systemd says of it, and whether the unit is of this version. Exit code 0: it runs; 1: it does not.

    With --json {"unit", "installed", "version", "current", "changed", "program", "lingers", "systemd"}, the
    last as systemctl shows it.
    """
    service = _service(system)
    there = service.installed()
    state = service.state()
    active = state.get("ActiveState") in {"active", "reloading"}
    lingers = service.lingers() if service.scope == "user" else None
    if json_wanted:
        print_json(
            {
                "unit": str(service.path),
                "installed": there is not None,
                "version": there.version if there else None,
                "current": there.current if there else None,
                "changed": there.changed if there else None,
                "program": str(there.program) if there and there.program else None,
                "lingers": lingers,
                "systemd": state,
            }
        )
        return 0 if active else 1
    if there is None:
        click.echo(say("service_absent", path=service.path))
        click.echo(f"→ {service.command('install')}")
        return 1
    click.echo(say("service_unit", path=service.path, version=there.version or "–", program=there.program))
    if not there.current:
        click.echo(say("service_other_version"))
        click.echo(f"→ {service.command('install')}")
    if there.changed:
        click.echo(say("service_changed"))
    if not state:
        click.echo(say("service_not_booted"))
        return 1
    # systemd goes on showing the last word of a daemon that is gone.
    said = state.get("StatusText") if state.get("ActiveState") not in {"inactive", "failed"} else None
    facts = {"active": state.get("ActiveState"), "sub": state.get("SubState")}
    click.echo(say("service_state_said", **facts, text=said) if said else say("service_state", **facts))
    if state.get("NRestarts", "0") != "0":
        click.echo(say("service_restarts", count=state["NRestarts"]))
    if state.get("Result") not in {"success", None}:
        click.echo(say("service_result", result=state["Result"]))
    if not active:
        click.echo(f"→ {service.journal}")
    if lingers is False:
        from ondam.deploy.service import user_name

        told = _told(Phrase("service_ends_at_logout", user=user_name()))
        click.echo(told["text"])
        click.echo(f"→ {told['next']}")
    return 0 if active else 1


def _service(system: bool) -> Service:
    from ondam.deploy.service import Service

    return Service("system" if system else "user")


def _told(phrase: Phrase) -> dict[str, str]:
    told = message(phrase.code, reader_language(), **phrase.facts)
    return {"text": told.text, "next": told.next}
