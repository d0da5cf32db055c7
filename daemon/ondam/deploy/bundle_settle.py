"""The part of an installation that the new version does itself: its engines, and the proof that all is there.

python -I -m ondam.deploy.bundle_settle VERSION-FOLDER INCOMING-FOLDER MANIFEST
"""

from __future__ import annotations

import sys
from pathlib import Path

from ondam.deploy.bundle_manifest import Manifest
from ondam.errors import BundleError, OndamError
from ondam.messages import reader_language
from ondam.models.catalog import Catalog
from ondam.models.registry import Registry
from ondam.models.store import Store, fault_error
from ondam.places import Places
from ondam.supervisor.environment import build
from ondam.supervisor.manifest import engine_roots, find_engines


class _Steps:
    """What an environment's making says, into the installation's log."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """See ``environment.Progress``."""
        print(text, flush=True)


def settle(version: Path, incoming: Path, manifest: Manifest) -> None:
    """Make the engines' environments and check the models. Raises OndamError."""
    scratch = incoming / "scratch"
    here = Places(config=scratch, data=version, state=scratch, runtime=scratch)
    engines = find_engines(engine_roots(incoming / "none"))
    wheels = Registry(find_links=((incoming / "wheels").as_uri(),), no_index=True)
    for environment in manifest.environments:
        if environment.name == "ondam":
            continue
        if environment.name not in engines:
            raise BundleError("bundle_engine_unknown", name=environment.name)
        build(
            engines[environment.name],
            environment.variant,
            here,
            registry=wheels,
            progress=_Steps(),
            log=incoming / f"build-{environment.name}.log",
            wheels=version / environment.lock,
        )
    store = Store(here.models)
    catalog = Catalog.union(engines, store.imported())
    for model in manifest.models:
        condition = store.check(catalog.card(model))
        if condition.state != "whole":
            raise fault_error(condition, store.folder(model))


def main() -> int:
    """For ``python -m``."""
    version, incoming, manifest = map(Path, sys.argv[1:])
    try:
        settle(version, incoming, Manifest.from_bytes(manifest.read_bytes(), manifest))
    except OndamError as error:
        # Not what to type then: it is for what runs, and this does not yet.
        print(error.message(reader_language()).text)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
