"""What could be run: engines × their models × this machine's devices, and why the others cannot. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Protocol

from ondam.at_home import at_home
from ondam.config import PlanConfig
from ondam.messages import Phrase
from ondam.models.card import ModelCard
from ondam.planner.arithmetic import Need, cache_lacks, card_need, tokens_per_s, up
from ondam.planner.correction import extra_of
from ondam.planner.facts import Facts
from ondam.planner.gate import FP8, Gate, gate
from ondam.planner.plan import Refusal
from ondam.planner.rooms import Kind, Room
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Language, Stage

AUTO = "auto"

KV_DTYPE = "kv_cache_dtype"
"""Option of an engine that can keep keys and values in FP8 (vLLM's name for it)."""

CACHE_BYTES = "kv_cache_memory_bytes"
"""Option of an engine that is told the size of its cache, states included."""

ANY_LANGUAGE = frozenset({"*", "mul"})
"""In a manifest or a model's card: whatever is asked."""

LARGEST_ON_CPU_B = 0.3
"""Speech models that a processor computes in less time than they last."""

CPU_EXTRA_GIB = 0.3
"""Of an engine on the processor: interpreter, libraries and buffers; no context, no graphs."""

STT_TOKENS = 1024
"""Of one utterance, for a recognizer that is a language model: 30 s at 13 a second, words to expect, and
text."""


class ModelLookup(Protocol):
    """What is known of models on the disk."""

    def find(self, model_id: str) -> tuple[Path, str | None]:
        """What an engine is given, and the SHA-256 of its weights file if known. Raises ModelError."""

    def ready(self, model_id: str) -> bool:
        """Whether it may be chosen without being asked for: it is on the disk, or comes with Ondam."""

    def card(self, model_id: str) -> ModelCard | None:
        """Its card, whether an engine or an import declares it."""

    def weights(self, path: Path) -> Mapping[str, int]:
        """Bytes of a weights file that the user named, or of each in a folder, by name; empty: not known."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user has asked for in a stage."""

    engine: str = AUTO
    model: str = AUTO
    named: bool = True
    """Whether by name; else the planner's own choice of a voice for the processor."""

    @property
    def fixed(self) -> bool:
        """Whether any of it was named."""
        return self.named and (self.engine, self.model) != (AUTO, AUTO)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model on one engine on one kind of device."""

    manifest: Manifest
    card: ModelCard
    kind: Kind
    gates: Mapping[str, Gate]
    """Rooms that it can run in, by device."""
    need: Need
    fixed: bool
    """Whether the user named its engine or itself."""
    named: bool
    """Whether the user named the model itself."""
    cache: str = AUTO
    """Type of its key/value cache, as it is counted."""
    floor: float = 0.0
    """GiB that its cache should have beyond ``need``, where its card has them."""

    @property
    def quality(self) -> tuple[float, float]:
        """Which of two is better: by parameters, then by bits."""
        card = self.card
        return card.parameters_b or card.size / 1e9, card.bytes_per_parameter or 0.0

    @property
    def light(self) -> bool:
        """Whether a processor computes it quickly enough for a conversation."""
        return "cpu" in self.manifest.needs.devices and light(self.card)

    @property
    def program_gib(self) -> float:
        """Of main memory, what its program takes."""
        return up(self.manifest.needs.memory_mib / 1024)

    def refusal(self, reason: Phrase, budget_gib: float | None = None, need: Need | None = None) -> Refusal:
        """Why not this one. ``need``: where it would take something else than by itself."""
        return Refusal(
            stage=self.manifest.stage,
            engine=self.manifest.name,
            model=self.card.id,
            quantization=self.card.quantization,
            device=self.kind,
            reason=reason,
            need=need or self.need,
            budget_gib=budget_gib,
            fixed=self.fixed,
        )


@dataclass
class Search:
    """Goes through everything that is declared."""

    facts: Facts
    settings: PlanConfig
    language: Language
    engines: Mapping[str, EngineFolder]
    options: Mapping[str, Mapping[str, object]]
    """Of each engine, the user's on top of the manifest's."""
    models: ModelLookup
    ahead: bool
    """Whether models that have to be fetched first may be chosen."""
    measured: Mapping[str, float]
    own: Mapping[str, Mapping[str, object]]
    """Of each engine, the options that the user has set."""
    refused: list[Refusal] = field(default_factory=list)

    def candidates(self, stage: Stage, wish: Wish, rooms: Sequence[Room]) -> list[Candidate]:
        """Those of a stage that can run in ``rooms``, by quality, the best last.

        What comes with Ondam is small enough for the processor, and goes onto a card only by name.
        """
        imported = None if wish.model == AUTO else self._of_nobody(stage, wish.model)
        found = [
            candidate
            for manifest, card in declared(self.engines, stage, wish, imported)
            if wish.model != AUTO or not card.fetchable
            for candidate in self._on_devices(manifest, card, rooms, wish)
        ]
        return sorted(found, key=lambda candidate: candidate.quality)

    def _of_nobody(self, stage: Stage, model: str) -> ModelCard | None:
        """The card of a model that no engine need declare: imported, or named by where it lies."""
        if is_path(model):
            return card_of_path(stage, model, self.models.weights(placed_at(model)))
        return self.models.card(model)

    def allowed(self, manifest: Manifest, card: ModelCard | None) -> Phrase | None:
        """What forbids it on any device: its licence, the hub's gate, the disk, weights not fetched."""
        for licence in (manifest.licence, *((card.licence,) if card else ())):
            if not licensed(licence, self.settings.licences):
                limits = ", ".join(self.settings.licences)
                return Phrase("plan_licence", licence=licence, allowed=limits)
        if card is None or here(self.models, card):
            return None
        if card.gated and not self.settings.gated:
            return Phrase("plan_gated", repository=card.repository)
        if not self.ahead:
            return Phrase("plan_not_here", model=card.id)
        size, free = card.size / 2**30, self.facts.disk_free_gib
        if free is not None and size > free:
            return Phrase("plan_disk", size=f"{size:.1f}", free=f"{free:.1f}")
        return None

    def cache(self, manifest: Manifest, rooms: Sequence[Room] = ()) -> str:
        """Type of a language model's key/value cache: the user's, else FP8 where every one of ``rooms`` has
        it."""
        options = self.options.get(manifest.name, {})
        told = str(options.get("cache_type") or options.get(KV_DTYPE) or AUTO)
        if told != AUTO or KV_DTYPE not in options or KV_DTYPE in self.own.get(manifest.name, {}):
            return told
        able = [room.gpu is not None and (room.gpu.capability or (0, 0)) >= FP8 for room in rooms]
        return "fp8" if able and all(able) else AUTO

    def need(self, manifest: Manifest, card: ModelCard, kind: str, cache: str | None = None) -> Need | None:
        """What it takes on a device of that kind, with a key/value cache of the type ``cache`` (None: as its
        options have it); None where its size is not known."""
        options = self.options.get(manifest.name, {})
        tokens, sessions, size = STT_TOKENS, 1, 0
        if manifest.stage != "llm":
            cache = AUTO
        elif cache is None:
            cache = self.cache(manifest)
        if manifest.stage == "llm":
            tokens = _number(options, ("context_length", "max_model_len"), self.settings.context_tokens)
            if not manifest.needs.one_at_a_time:
                sessions = _number(options, ("parallel", "max_num_seqs"), self.settings.sessions)
            size = _number(options, (CACHE_BYTES,), 0)
        extra = extra_of(self.measured, manifest.name, card.id, kind)
        if extra is None and kind == "cpu":
            extra = CPU_EXTRA_GIB
        return card_need(
            card, tokens=tokens, sessions=sessions, cache=cache, cache_bytes=size, measured_extra=extra
        )

    def floor(self, manifest: Manifest, need: Need) -> float:
        """GiB that its cache lacks of what it should have; of a size that the user has set, none."""
        options = self.options.get(manifest.name, {})
        unset = CACHE_BYTES in options and not _number(options, (CACHE_BYTES,), 0)
        return cache_lacks(need) if unset else 0.0

    def _on_devices(
        self, manifest: Manifest, card: ModelCard, rooms: Sequence[Room], wish: Wish
    ) -> Iterator[Candidate]:
        fixed, named = wish.fixed, wish.model != AUTO
        kinds = dict.fromkeys(room.kind for room in rooms)
        for kind in kinds:
            if kind not in manifest.needs.devices:
                continue
            there = [room for room in rooms if room.kind == kind]
            gates = {room.device: gate(manifest, kind, room.gpu, card, self.facts.system) for room in there}
            able = {device: found for device, found in gates.items() if isinstance(found, Gate)}
            cache = self.cache(manifest, [room for room in there if not able or room.device in able])
            need = self.need(manifest, card, kind, cache)
            if need is None:
                if fixed:
                    self._refuse(
                        manifest, card, kind, Phrase("plan_size_unknown", model=card.id), None, fixed
                    )
                continue
            if forbidden := self._heard(manifest, card) or self.allowed(manifest, card):
                self._refuse(manifest, card, kind, forbidden, need, fixed)
                continue
            if not able:
                reason = next(found for found in gates.values() if isinstance(found, Phrase))
                self._refuse(manifest, card, kind, reason, need, fixed)
            elif slow := self._slow(card, [room for room in there if room.device in able], wish):
                self._refuse(manifest, card, kind, slow, need, fixed)
            else:
                floor = self.floor(manifest, need)
                yield Candidate(manifest, card, kind, able, need, fixed, named, cache, floor)

    def _heard(self, manifest: Manifest, card: ModelCard) -> Phrase | None:
        if manifest.stage == "llm" or (
            speaks(manifest.capabilities.languages, self.language) and speaks(card.languages, self.language)
        ):
            return None
        return Phrase("plan_language", model=card.id, language=self.language)

    def _slow(self, card: ModelCard, rooms: Sequence[Room], wish: Wish) -> Phrase | None:
        """Slower than is preferred. What the user named is taken as it is."""
        if wish.model != AUTO or (card.stage == "tts" and wish.fixed):
            return None
        prefer = self.settings.prefer
        if card.stage == "tts" and card.published_ms and prefer != "quality":
            if card.published_ms <= self.settings.slowest_voice_ms:
                return None
            longest = self.settings.slowest_voice_ms
            facts = {"ms": f"{card.published_ms:.0f}", "on": card.published_on, "longest": f"{longest:.0f}"}
            return Phrase("plan_slow_voice", **facts)
        least: float = getattr(self.settings.tokens_per_s, prefer)
        rates = [tokens_per_s(card, room.gb_s) for room in rooms]
        if card.stage != "llm" or any(rate is None or rate >= least for rate in rates):
            return None
        best = max(rate for rate in rates if rate is not None)
        gb_s = max(room.gb_s or 0.0 for room in rooms)
        return Phrase("plan_slow_model", rate=f"{best:.0f}", least=f"{least:.0f}", gb_s=f"{gb_s:.0f}")

    def _refuse(
        self, manifest: Manifest, card: ModelCard, kind: str, reason: Phrase, need: Need | None, fixed: bool
    ) -> None:
        self.refused.append(
            Refusal(
                manifest.stage, manifest.name, card.id, card.quantization, kind, reason, need, None, fixed
            )
        )


def declared(
    engines: Mapping[str, EngineFolder], stage: Stage, wish: Wish, imported: ModelCard | None = None
) -> Iterator[tuple[Manifest, ModelCard]]:
    """Engines of a stage with the models that each can load, as far as they are what was asked for.

    ``imported``: the model that was asked for, where no engine declares it; an engine loads it that loads
    another one of its form. One that is named by where it lies is loaded by the engine that is named with it.
    """
    cards = of_stage(engines, stage)
    for folder in engines.values():
        manifest = folder.manifest
        if manifest.stage != stage or wish.engine not in (AUTO, manifest.name):
            continue
        for card in cards.values():
            if wish.model in (AUTO, card.id) and loads(manifest, card):
                yield manifest, card
        if imported is not None and imported.stage == stage and imported.id not in cards:
            forms = {_form(card) for card in cards.values() if loads(manifest, card)} - {""}
            named = is_path(imported.id) and wish.engine == manifest.name
            if named or _form(imported) in forms:
                yield manifest, imported


def of_stage(engines: Mapping[str, EngineFolder], stage: Stage) -> dict[str, ModelCard]:
    """Every model of a stage that an engine declares, by id."""
    found: dict[str, ModelCard] = {}
    for folder in engines.values():
        for card in folder.manifest.models:
            if card.stage == stage:
                found.setdefault(card.id, card)
    return found


def _form(card: ModelCard) -> str:
    """``.gguf``, ``.onnx``; of a folder, the name of its weights file. Empty where no file is known yet."""
    if suffix := PurePosixPath(card.entry).suffix:
        return suffix
    return max(card.files, key=lambda file: file.size).path if card.files else ""


def loads(manifest: Manifest, card: ModelCard) -> bool:
    """Whether the engine can load it: it is said to, declares it, or declares none and takes what there
    is. A voice that declares none is part of its program."""
    if card.stage != manifest.stage:
        return False
    if card.served_by:
        return manifest.name in card.served_by
    if not manifest.models:
        return manifest.stage != "tts"
    return any(own.id == card.id for own in manifest.models)


def able(
    engines: Mapping[str, EngineFolder], stage: Stage, model: str, imported: ModelCard | None = None
) -> list[str]:
    """Names of the engines of a stage that can load the model of that id; see ``declared``."""
    return [manifest.name for manifest, _ in declared(engines, stage, Wish(AUTO, model), imported)]


def light(card: ModelCard) -> bool:
    """Whether a processor computes it quickly enough: small speech models, and what comes with Ondam."""
    return card.fetchable or (card.stage != "llm" and (card.parameters_b or 0.0) <= LARGEST_ON_CPU_B)


def licensed(licence: str, allowed: Sequence[str]) -> bool:
    """Whether a licence is within the user's limits; none set: any is. SPDX's names know no case.

    Empty, of weights that the user named by where they lie: theirs to know.
    """
    if not allowed or not licence:
        return True
    return any(fnmatchcase(licence.lower(), pattern.lower()) for pattern in allowed)


def is_path(model: str) -> bool:
    """Whether a model is named by where it lies, and not by an id of the catalog."""
    return "/" in model or model.startswith("~") or model.endswith(".gguf")


def placed_at(model: str) -> Path:
    """Where a model lies that is named so."""
    try:
        return at_home(model)
    except FileNotFoundError:
        return Path(model)  # told as the file that is not there


def card_of_path(stage: Stage, model: str, weights: Mapping[str, int]) -> ModelCard | None:
    """What there is to count of a model that is named by where it lies; None where nothing is seen there."""
    if not sum(weights.values()):
        return None
    files = [{"path": name, "size": size, "sha256": "0" * 64} for name, size in weights.items()]
    name = placed_at(model).name
    entry = name if name in weights else "."
    card = ModelCard.model_validate(
        {"id": "weights", "stage": stage, "languages": ["*"], "licence": "", "files": files, "entry": entry}
    )
    return card.model_copy(update={"id": model})  # no id of the catalog: its name is where it lies


def here(models: ModelLookup, card: ModelCard) -> bool:
    """Whether nothing has to be fetched: what is named by where it lies never has to be."""
    return is_path(card.id) or models.ready(card.id)


def speaks(languages: Sequence[str], language: Language) -> bool:
    """Whether ``language`` is among them."""
    return not ANY_LANGUAGE.isdisjoint(languages) or language in languages


def _number(options: Mapping[str, object], names: Sequence[str], otherwise: int) -> int:
    for name in names:
        value = options.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return otherwise
