"""``ondam bundle``: one file to carry to a machine without a network; versions installed from such files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ondam.cli.terminal import as_json, columns, print_json, say
from ondam.errors import BundleError

if TYPE_CHECKING:
    from ondam.deploy.bundle_create import Wish
    from ondam.deploy.bundle_versions import Versions

bundle_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="BUNDLE")

signers_option = click.option(
    "--allowed-signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Whose signatures count (ssh-keygen(1)); by default /etc/ondam/allowed_signers.",
)

unsigned_option = click.option("--unsigned", is_flag=True, help="Without checking a signature.")

root_option = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where versions are kept; by default where this one is, /opt/ondam for root, else below your home.",
)


@click.group("bundle")
def command() -> None:
    """One file to carry to a machine without a network: make, check, install, go back."""


@command.command()
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
@click.option("--engine", "engines", multiple=True, metavar="NAME[:VARIANT]", help="Else what the plan says.")
@click.option("--model", "models", multiple=True, metavar="ID", help="Else what the plan says.")
@click.option("--for", "machine", metavar="FILE", help="The target, as `ondam plan --facts` tells it there.")
@click.option(
    "--config", "file", type=click.Path(path_type=Path), help="A config.toml to plan by, and to carry."
)
@click.option("--target-machine", type=click.Choice(["x86_64", "aarch64"]), help="Else this one's.")
@click.option("--target-python", metavar="3.N", help="Minor version of the target's Python; else this one's.")
@click.option("--target-glibc", metavar="2.N", help="Of the target; else this machine's.")
@click.option(
    "--python", type=click.Path(path_type=Path), help="Carry this Python: its folder, or a tar of it."
)
@click.option("--no-debian", is_flag=True, help="Without Debian packages.")
@click.option(
    "--wheel", type=click.Path(path_type=Path, exists=True), help="Ondam's own, instead of building it."
)
@click.option("--sign-key", type=click.Path(path_type=Path), metavar="KEY", help="Private OpenSSH key.")
@click.option("--unsigned", is_flag=True, help="Do not sign it.")
@click.option("--cache", type=click.Path(path_type=Path), help="Where what was fetched is kept.")
@as_json
def create(
    out: Path | None,
    sign_key: Path | None,
    unsigned: bool,
    cache: Path | None,
    json_wanted: bool,
    **asked: Any,
) -> None:
    """Make a bundle, on a machine with a network.

    It holds Ondam, the engines of the plan as wheels, their models, and the Debian packages that they need;
    with an SBOM per environment, licences, and a signed list of every file. Interrupted, it goes on where it
    was.
    """
    import platformdirs

    from ondam.deploy.bundle_create import create as make
    from ondam.models.progress import Bars
    from ondam.models.registry import Registry
    from ondam.models.store import Store
    from ondam.places import places

    if sign_key is None and not unsigned:
        raise BundleError("bundle_no_key")
    here = places()
    began = time.monotonic()
    with Bars() as bars:
        if unsigned:
            bars.say(say("bundle_made_unsigned"))
        wish = _wish(here, **asked)
        if wish.lacking:
            bars.say(say("bundle_plan_lacks", names=", ".join(wish.lacking)))
        target = wish.target
        from ondam import __version__

        name = f"ondam-{__version__}-{target.system}-{target.machine}-py{target.python}.bundle"
        out = out or Path(name)
        manifest = make(
            wish,
            out,
            store=Store(here.models),
            registry=Registry.from_pip(),
            cache=cache or platformdirs.user_cache_path("ondam") / "bundle",
            key=None if unsigned else sign_key,
            reporter=bars,
        )
    size = out.stat().st_size
    if json_wanted:
        print_json(
            {"path": str(out), "size": size, "files": len(manifest.files), "identity": manifest.identity}
        )
        return
    facts = {"path": out, "size": _mb(size), "files": len(manifest.files), "identity": manifest.identity}
    click.echo(say("bundle_created", **facts, seconds=time.monotonic() - began))


@command.command()
@bundle_file
@signers_option
@unsigned_option
@click.option("--elsewhere", is_flag=True, help="Do not ask whether it fits this machine.")
@root_option
@as_json
def verify(
    file: Path,
    allowed_signers: Path | None,
    unsigned: bool,
    elsewhere: bool,
    root: Path | None,
    json_wanted: bool,
) -> None:
    """Check the signature, every byte, and whether it fits this machine. Installs nothing."""
    from ondam.deploy import bundle_install
    from ondam.models.progress import Bars

    began = time.monotonic()
    place = _versions(root).root
    with Bars() as bars:
        checked = bundle_install.verify(
            file, place, _signers(allowed_signers), bars, unsigned=unsigned, fit=not elsewhere
        )
    manifest = checked.head.manifest
    if json_wanted:
        print_json(
            {
                "path": str(file),
                "identity": manifest.identity,
                "signer": checked.signer,
                "files": len(manifest.files),
            }
        )
        return
    code = "bundle_verified_elsewhere" if elsewhere else "bundle_verified"
    click.echo(say(code, path=file, seconds=time.monotonic() - began))


@command.command()
@bundle_file
@signers_option
@unsigned_option
@click.option("--no-switch", is_flag=True, help="Leave the current version as it is.")
@click.option("--bin", "folder", type=click.Path(path_type=Path), help="Where the command is put.")
@root_option
@as_json
def install(
    file: Path,
    allowed_signers: Path | None,
    unsigned: bool,
    no_switch: bool,
    folder: Path | None,
    root: Path | None,
    json_wanted: bool,
) -> None:
    """Install it beside what is there, with no network, and switch to it last.

    Interrupted anywhere, the version that runs stays what it was; typed again, it goes on.
    """
    from ondam.deploy.bundle_install import Installation, afterwards
    from ondam.deploy.bundle_versions import default_bin
    from ondam.models.progress import Bars

    began = time.monotonic()
    versions = _versions(root)
    with Bars() as bars:
        installation = Installation(file, versions, bars)
        version = installation.run(_signers(allowed_signers), unsigned=unsigned, switch=not no_switch)
    lines = afterwards(version, versions, folder or default_bin())
    if json_wanted:
        print_json(
            {"identity": version.identity, "folder": str(version.folder), "current": versions.current()}
        )
        return
    for line in lines:
        click.echo(str(say(line.code, **line.facts)))
    code = "bundle_installed_beside" if no_switch else "bundle_installed"
    click.echo(say(code, name=version.identity, seconds=time.monotonic() - began))


@command.command()
@click.option("--to", "identity", metavar="VERSION", help="Another one than the previous.")
@root_option
@as_json
def rollback(identity: str | None, root: Path | None, json_wanted: bool) -> None:
    """Go back to the version that ran before. Nothing is built; a daemon that runs has to be started anew."""
    from ondam.deploy.bundle_install import still_running

    versions = _versions(root)
    with versions.changing(make=False):
        wanted = identity or versions.previous()
        if wanted is None or wanted == versions.current():
            raise BundleError("bundle_nothing_before", root=versions.root)
        version = versions.named(wanted)
        versions.switch(version)
    if json_wanted:
        print_json({"current": versions.current(), "previous": versions.previous()})
        return
    for line in still_running(versions):
        click.echo(str(say(line.code, **line.facts)))
    click.echo(say("bundle_switched", name=version.identity))


@command.command("list")
@root_option
@as_json
def list_versions(root: Path | None, json_wanted: bool) -> None:
    """The installed versions, oldest first."""
    versions = _versions(root)
    rows = [_row(versions, identity) for identity in (version.identity for version in versions.all())]
    if json_wanted:
        print_json(rows)
        return
    if not rows:
        click.echo(say("bundle_none_installed", root=versions.root))
    for line in columns(
        [(r["identity"], say(f"bundle_state_{r['state']}"), _mb(r["size"]), r["created"]) for r in rows]
    ):
        click.echo(line)


@command.command()
@click.option("--previous", "also_previous", is_flag=True, help="The previous version too.")
@root_option
@as_json
def prune(also_previous: bool, root: Path | None, json_wanted: bool) -> None:
    """Remove versions that are neither current nor previous, and what no version needs."""
    from ondam.deploy.bundle_versions import discard, in_use, weight

    versions = _versions(root)
    removed, freed = [], 0
    with versions.changing(make=False):
        kept = {versions.current(), None if also_previous else versions.previous()}
        for version in versions.all():
            if version.identity in kept:
                continue
            if pids := in_use(version.folder):
                click.echo(
                    say("bundle_kept_running", name=version.identity, pids=", ".join(map(str, pids))),
                    err=True,
                )
                continue
            freed += weight(version.folder)
            versions.remove(version)
            removed.append(version.identity)
        for path in versions.leftovers():
            freed += weight(path)
            discard(path)
            removed.append(path.name)
    if json_wanted:
        print_json({"removed": removed, "freed": freed})
        return
    for name in removed:
        click.echo(name)
    click.echo(say("bundle_pruned", count=len(removed), freed=_mb(freed)))


def _versions(root: Path | None) -> Versions:
    """Where they are kept: named, else where this Ondam is one of them, else the default."""
    from ondam.carried import carried
    from ondam.deploy.bundle_versions import Versions, default_root

    version = carried()
    if root is not None:
        return Versions(root.absolute())
    return Versions(version.parent.parent if version is not None else default_root())


def _signers(named: Path | None) -> Path | None:
    from ondam.deploy.bundle_first import SIGNERS

    return named or (SIGNERS if SIGNERS.exists() else None)


def _row(versions: Versions, identity: str) -> dict[str, Any]:
    from ondam.deploy.bundle_versions import weight

    version = versions.named(identity)
    places = {versions.current(): "current", versions.previous(): "previous"}
    return {
        "identity": identity,
        "state": places.get(identity, "older"),
        "version": version.manifest.version,
        "created": version.manifest.created,
        "folder": str(version.folder),
        "size": weight(version.folder),
        "engines": [each.name for each in version.manifest.environments if each.name != "ondam"],
        "models": list(version.manifest.models),
    }


def _wish(
    here: Any,
    *,
    engines: Sequence[str],
    models: Sequence[str],
    machine: str | None,
    file: Path | None,
    target_machine: str | None,
    target_python: str | None,
    target_glibc: str | None,
    python: Path | None,
    no_debian: bool,
    wheel: Path | None,
) -> Wish:
    from ondam.deploy.bundle_wish import wish_for

    return wish_for(
        here,
        engines=engines,
        models=models,
        facts=machine,
        config=file,
        machine=target_machine,
        python=target_python,
        glibc=target_glibc,
        carry=python,
        debian=not no_debian,
        wheel=wheel,
    )


def _mb(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"
