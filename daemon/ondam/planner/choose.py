"""From the machine and the configuration to the plan. Pure; every problem is told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ondam.config import Config
from ondam.errors import ConfigError
from ondam.messages import Phrase, Phrases
from ondam.models.card import ModelCard
from ondam.planner.arithmetic import CLAUSE_TOKENS, GIB, Spill, less, sum_of, tokens_per_s, up
from ondam.planner.candidates import (
    AUTO,
    CACHE_BYTES,
    KV_DTYPE,
    Candidate,
    ModelLookup,
    Search,
    Wish,
    able,
    card_of_path,
    here,
    is_path,
    licensed,
    light,
    loads,
    of_stage,
    placed_at,
    speaks,
)
from ondam.planner.facts import Facts
from ondam.planner.gate import FP8, MIN_FLOAT16, plain
from ondam.planner.ladder import Placed
from ondam.planner.oncards import Main, no_card, on_cards
from ondam.planner.plan import Expected, Plan, PlannedEngine, Refusal
from ondam.planner.policy import policy_of
from ondam.planner.rooms import Room, cards, main_memory
from ondam.planner.wishes import Wishes
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Language, Stage

STAGES: tuple[Stage, ...] = ("stt", "llm", "tts")

SHIPPED: Mapping[Stage, tuple[str, str]] = {
    "stt": ("faster_whisper", "whisper-base"),
    "llm": ("llama_server", "smollm2-135m-instruct"),
}
"""What ``auto`` means on a processor: engines and models that a package registry carries."""

FIRST_VOICE: Mapping[Language, str] = {"en": "piper", "ko": "espeak"}
"""What ``tts.engine = "auto"`` means there. No package registry carries a Korean neural voice."""

NOTHING_MEASURED: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Threads:
    """How many threads each engine computes on."""

    stt: int
    llm: int
    tts: int

    def of(self, stage: Stage) -> int:
        """Those of one stage."""
        return {"stt": self.stt, "llm": self.llm, "tts": self.tts}[stage]


def share_threads(cores: int) -> Threads:
    """So that engines on one machine do not trample each other.

    Recognizer and language model meet (a draft begins while the next words are heard): together they get the
    cores. The voice meets the language model in its quiet phase, decoding, and may overlap it. Measured on
    two cores, where (1, 2, 2) was best of those tried; with more cores the rule is drawn on from there.
    """
    stt = min(max(1, cores // 4), 4)
    llm = cores if cores <= 2 else min(cores - stt, 16)
    return Threads(stt=stt, llm=llm, tts=min(cores, max(2, cores // 4), 4))


def choose(
    facts: Facts,
    config: Config,
    engines: Mapping[str, EngineFolder],
    models: ModelLookup,
    *,
    ahead: bool = False,
    measured: Mapping[str, float] = NOTHING_MEASURED,
) -> Plan:
    """What this machine should run.

    ``ahead``: models that have to be fetched first may be chosen too. ``measured``: see
    ``planner.correction``. Raises ConfigError with all that is wrong with the configuration's engines, or
    with the sums of what it asks for and this machine has no room for; ModelError when weights are missing or
    broken.
    """
    plan = consider(facts, config, engines, models, ahead=ahead, measured=measured)
    if lacking := missing(plan):
        named = {refusal.stage for refusal in plan.refused if refusal.fixed}
        reasons = [
            Phrase("plan_refused", stage=no.stage, engine=no.engine, model=no.model, reason=no.reason)
            for no in plan.refused
            if no.stage in lacking and (no.fixed or no.stage not in named)
        ]
        raise ConfigError("plan_incomplete", problems=Phrases(tuple(reasons)))
    return plan


def missing(plan: Plan) -> list[Stage]:
    """Stages that nobody would serve; a last-resort voice is no voice that was asked for."""
    served = {engine.stage for engine in plan.launched if not engine.spare} | {
        engine.stage for engine in plan.outside
    }
    return [stage for stage in STAGES if stage not in served]


def consider(
    facts: Facts,
    config: Config,
    engines: Mapping[str, EngineFolder],
    models: ModelLookup,
    *,
    ahead: bool = False,
    measured: Mapping[str, float] = NOTHING_MEASURED,
) -> Plan:
    """As ``choose``; but what was asked for and cannot run is left out, and told in ``refused``."""
    chooser = _Chooser(facts, config, engines, models, ahead, measured)
    plan = chooser.plan()
    if chooser.problems:
        problems = Phrases(tuple(chooser.problems))
        raise ConfigError("config_problems", origin="config.toml", problems=problems)
    return plan


@dataclass
class _Chooser:
    facts: Facts
    config: Config
    engines: Mapping[str, EngineFolder]
    models: ModelLookup
    ahead: bool
    measured: Mapping[str, float]
    wishes: Wishes = field(init=False)
    refused: list[Refusal] = field(default_factory=list)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wishes = Wishes(self.config, self.engines)

    @property
    def problems(self) -> list[Phrase]:
        """Of the configuration."""
        return self.wishes.problems

    def plan(self) -> Plan:
        """Addresses first, then what goes onto cards, then what is left, on the processor."""
        wanted = {stage: wish for stage in STAGES if (wish := self.wishes.of(stage)) is not None}
        self.options = self.wishes.settings()
        self.wishes.strangers()
        rooms = cards(self.facts, self.config.plan)
        found: dict[Stage, PlannedEngine] = {}
        chosen = dict(wanted)
        if not self.problems and (rooms or self.ahead or self.config.plan.device not in ("auto", "cpu")):
            found, chosen = self._on_cards(rooms, wanted)
        for stage, wish in chosen.items():
            if stage not in found and (planned := self._on_processor(stage, wish)) is not None:
                found[stage] = planned
        launched = [found[stage] for stage in STAGES if stage in found]
        launched = self._within_disk(self._within_memory([*launched, *self._spare(launched)]))
        return Plan(tuple(launched), tuple(self.wishes.outside), tuple(self.refused))

    def _on_cards(
        self, rooms: Sequence[Room], wanted: Mapping[Stage, Wish]
    ) -> tuple[dict[Stage, PlannedEngine], dict[Stage, Wish]]:
        """What is placed there, and what is wanted of the processor for the rest."""
        search = Search(
            facts=self.facts,
            settings=self.config.plan,
            language=self.config.spoken_language,
            engines=self.engines,
            options=self.options,
            models=self.models,
            ahead=self.ahead,
            measured=self.measured,
            own=self.config.engines,
        )
        if not rooms:
            self.refused += no_card(search, wanted)
            return {}, dict(wanted)
        memory = main_memory(self.facts, self.config.plan)
        spared = replace(memory, budget=less(memory.budget, self._programs()))
        if self._one_memory:
            spared = replace(spared, budget=less(spared.budget, sum(max(0.0, room.gib) for room in rooms)))
        main = Main(memory.budget, self._one_memory, self._least(wanted))
        result = on_cards(search, rooms, spared, main, wanted)
        self.refused += result.refused
        chosen = dict(wanted)
        if result.voice is not None:
            chosen["tts"] = Wish(result.voice.manifest.name, result.voice.card.id, wanted["tts"].fixed)
        return {stage: self._placed(placed, spared) for stage, placed in result.placed.items()}, chosen

    @property
    def _one_memory(self) -> bool:
        """Whether what lies on a card lies in the main memory."""
        return self.facts.unified_memory or self.facts.metal

    def _least(self, wanted: Mapping[Stage, Wish]) -> dict[Stage, float]:
        """GiB that recognizer and voice take at the least where they stay on the processor."""
        shipped = {"stt": SHIPPED["stt"][0], "tts": FIRST_VOICE[self.config.spoken_language]}
        return {
            stage: up(self.engines[shipped[stage]].manifest.needs.memory_mib / 1024)
            for stage in wanted
            if stage in shipped and shipped[stage] in self.engines
        }

    def _programs(self) -> float:
        """GiB that engines on the processor may take beside layers that are put there."""
        needs = [
            folder.manifest.needs
            for folder in self.engines.values()
            if "cpu" in folder.manifest.needs.devices
        ]
        return up(sum(sorted((need.memory_mib / 1024 for need in needs), reverse=True)[:3]))

    def _placed(self, placed: Placed, memory: Room) -> PlannedEngine:
        candidate, room = placed.candidate, placed.rooms[0]
        manifest, card = candidate.manifest, candidate.card
        path, sha256 = (placed_at(card.id), None) if is_path(card.id) else self.models.find(card.id)
        gate = candidate.gates[room.device]
        budget = f"{sum(found.gib for found in placed.rooms):.2f}"
        reasons = [Phrase("plan_configured") if candidate.fixed else Phrase(f"plan_best_{manifest.stage}")]
        reasons.append(Phrase("plan_fits", need=placed.need.told, device=placed.device, budget=budget))
        if placed.spill is not None:
            reasons.append(_spilled(placed.spill, memory))
        reasons += [gate.note] if gate.note else []
        reasons += _of_cache(candidate, room, self.config.engines.get(manifest.name, {}))
        reasons += self._of_model(card)
        options = dict(self.options[manifest.name])
        mine = self.config.engines.get(manifest.name, {})
        for name, value in _settings(placed, options).items():
            if name in options and name not in mine:
                options[name] = value
        return PlannedEngine(
            engine=manifest.name,
            stage=manifest.stage,
            model=card.id,
            model_path=path,
            model_sha256=sha256,
            device=placed.device,
            threads=share_threads(self.facts.cores).of(manifest.stage),
            language=self.config.spoken_language,
            options=options,
            policy=policy_of(self.config, manifest.name),
            reason=reasons[0].code,
            variant=gate.variant,
            quantization=card.quantization,
            memory_gib=placed.gib,
            need=placed.need,
            program_gib=candidate.program_gib,
            reasons=tuple(reasons),
            expected=_expected(placed, memory),
        )

    def _of_model(self, card: ModelCard) -> list[Phrase]:
        """What a person should know of a model."""
        told = []
        if card.stage == "llm" and not card.fetchable and not self._speaks(card.languages):
            told.append(Phrase("plan_other_language", language=self.config.spoken_language))
        if card.repository and not card.verified:
            told.append(Phrase("plan_unverified"))
        if self.ahead and not here(self.models, card):
            code = "plan_to_accept" if card.gated else "plan_to_fetch"
            size = f"{card.size / 1e9:.1f}"
            told.append(Phrase(code, model=card.id, size=size, repository=card.repository))
        return told

    def _spare(self, launched: Sequence[PlannedEngine]) -> list[PlannedEngine]:
        """The last-resort voice, unless it is the first voice anyway."""
        name = self.config.tts.spare
        if not name or any(planned.engine == name for planned in launched):
            return []
        manifest = self.wishes.manifest("tts.spare", name, "tts")
        if manifest is None or self._forbidden(manifest, None, fixed=False):
            return []
        found = self._weights(manifest, Wish(name))
        return [] if found is None else [self._program(manifest, found, "plan_spare", spare=True)]

    def _on_processor(self, stage: Stage, wish: Wish) -> PlannedEngine | None:
        """What comes with Ondam, or what was asked for; None where there is a problem, or it is refused."""
        name = self._processor_engine(stage, wish)
        manifest = self.wishes.manifest(f"{stage}.engine", name, stage) if wish.engine == AUTO else None
        if wish.engine != AUTO and name in self.engines and self.engines[name].manifest.stage == stage:
            manifest = self.engines[name].manifest
        if manifest is None or self.problems:
            return None
        elsewhere = stage == "llm" and self.config.plan.device not in ("auto", "cpu")
        if elsewhere and not wish.fixed:
            return None
        if "cpu" not in manifest.needs.devices:
            kinds = {room.kind for room in cards(self.facts, self.config.plan)}
            told = any(refusal.model == wish.model for refusal in self.refused)
            if is_path(wish.model) and kinds.intersection(manifest.needs.devices) and not told:
                self._refuse(manifest, wish, "plan_size_unknown")
            elif not any(refusal.engine == name for refusal in self.refused):
                self._refuse(manifest, wish, "plan_needs_card", devices=", ".join(manifest.needs.devices))
            return None
        found = self._weights(manifest, wish)
        if found is None or self._forbidden(manifest, found.card, fixed=wish.fixed):
            return None
        if found.size == 0:
            self._refuse(manifest, wish, "plan_file_empty", path=found.path)
            return None
        if elsewhere:
            if not any(refusal.stage == stage and refusal.fixed for refusal in self.refused):
                code = "plan_size_unknown" if found.card is None else "plan_not_on_device"
                self._refuse(manifest, wish, code, device=self.config.plan.device)
            return None
        if self._kept_off(stage, found):
            return None
        reason = "plan_configured" if wish.fixed else "plan_shipped"
        if stage == "tts" and wish.engine == AUTO:
            reason = "plan_voice_for_language"
        elif stage == "tts" and not wish.named:
            reason = "plan_best_tts"
        elif stage == "llm" and found.languages is not None and not self._speaks(found.languages):
            reason = "plan_model_other_language" if wish.fixed else "plan_shipped_other_language"
        return self._program(manifest, found, reason)

    def _kept_off(self, stage: Stage, found: _Weights) -> bool:
        """Whether it was refused on a card, and no processor is meant to compute it."""
        refused = [no for no in self.refused if no.stage == stage and no.fixed and no.model == found.model]
        return bool(refused) and found.card is not None and not light(found.card)

    def _processor_engine(self, stage: Stage, wish: Wish) -> str:
        if wish.engine != AUTO:
            return wish.engine
        if stage == "tts" and wish.model == AUTO:
            return self._first_voice()
        shipped = FIRST_VOICE[self.config.spoken_language] if stage == "tts" else SHIPPED[stage][0]
        if wish.model == AUTO or is_path(wish.model):
            fit = [name for name, folder in self.engines.items() if folder.manifest.stage == stage]
        else:
            fit = able(self.engines, stage, wish.model, self.models.card(wish.model))
        return shipped if shipped in fit or not fit else fit[0]

    def _first_voice(self) -> str:
        language = self.config.spoken_language
        first = FIRST_VOICE[language]
        fit = [
            name
            for name, engine in self.engines.items()
            if engine.manifest.stage == "tts" and speaks(engine.manifest.capabilities.languages, language)
        ]
        return first if first in fit or not fit else fit[0]

    def _program(
        self, manifest: Manifest, weights: _Weights, reason: str, *, spare: bool = False
    ) -> PlannedEngine:
        stage, need = manifest.stage, sum_of(("program", up(manifest.needs.memory_mib / 1024)))
        card = weights.card
        if card is not None and not card.fetchable and (card.parameters_b or is_path(card.id)):
            search = Search(
                self.facts,
                self.config.plan,
                self.config.spoken_language,
                self.engines,
                self.options,
                self.models,
                self.ahead,
                self.measured,
                self.config.engines,
            )
            need = search.need(manifest, card, "cpu") or need
        reasons = [Phrase(reason), Phrase("plan_on_processor", need=need.told)]
        reasons += self._of_model(card) if card is not None else []
        if weights.path is not None and card is None and weights.size is None:
            reasons.append(Phrase("plan_file_unseen", path=weights.path))
        gb_s = main_memory(self.facts, self.config.plan).gb_s
        rate = tokens_per_s(card, gb_s) if card is not None and stage == "llm" else None
        return PlannedEngine(
            engine=manifest.name,
            stage=stage,
            model=weights.model,
            model_path=weights.path,
            model_sha256=weights.sha256,
            device="cpu",
            threads=share_threads(self.facts.cores).of(stage),
            language=self.config.spoken_language,
            options=dict(self.options[manifest.name]),
            policy=policy_of(self.config, manifest.name),
            spare=spare,
            reason=reason,
            variant=plain(manifest, "cpu", self.facts.system).variant,
            quantization=card.quantization if card is not None else "",
            memory_gib=need.gib,
            need=need,
            reasons=tuple(reasons),
            expected=_by_bandwidth(rate, gb_s),
        )

    def _weights(self, manifest: Manifest, wish: Wish) -> _Weights | None:
        """What the engine loads; None when there is a problem."""
        language, key, model = self.config.spoken_language, f"{manifest.stage}.model", wish.model
        if is_path(model):
            path = placed_at(model)
            sizes = self.models.weights(path)
            card = card_of_path(manifest.stage, model, sizes)
            return _Weights(model, path, None, card, sum(sizes.values()) if sizes else None)
        known = of_stage(self.engines, manifest.stage)
        if model == AUTO:
            if not manifest.models and manifest.stage == "tts":
                # Its voice is part of the program.
                return _Weights(manifest.name, None, None, None)
            own = [card for card in manifest.models or known.values() if loads(manifest, card)]
            fit = [card.id for card in own if manifest.stage == "llm" or self._speaks(card.languages)]
            if not fit:
                self.wishes.tell("problem_no_model", key=key, name=manifest.name, language=language)
                return None
            model = fit[0]
        card = known.get(model) or self.models.card(model)
        if card is not None and card.stage != manifest.stage:
            self.wishes.tell(
                "problem_model_stage", key=key, name=model, found=card.stage, stage=manifest.stage
            )
        if self.problems:
            return None  # the plan is refused anyway; weights are not looked for in vain
        path, sha256 = self.models.find(model)
        return _Weights(model, path, sha256, card)

    def _speaks(self, languages: Sequence[str]) -> bool:
        return speaks(languages, self.config.spoken_language)

    def _forbidden(self, manifest: Manifest, card: ModelCard | None, *, fixed: bool) -> bool:
        """Whether its licence is outside of the user's limits; it is then told as refused."""
        allowed = self.config.plan.licences
        for licence in (manifest.licence, *((card.licence,) if card else ())):
            if not licensed(licence, allowed):
                wish = Wish(manifest.name, card.id if card else AUTO) if fixed else Wish()
                facts = {"licence": licence, "allowed": ", ".join(allowed)}
                self._refuse(manifest, wish, "plan_licence", **facts)
                return True
        if card is None or here(self.models, card):
            return False
        # What is not here and not planned ahead is asked for by name: the lookup says then what to type.
        wish, size, free = Wish(manifest.name, card.id, fixed), card.size / GIB, self.facts.disk_free_gib
        if card.gated and not self.config.plan.gated:
            self._refuse(manifest, wish, "plan_gated", repository=card.repository)
            return True
        if self.ahead and free is not None and size > free:
            self._refuse(manifest, wish, "plan_disk", size=f"{size:.1f}", free=f"{free:.1f}")
            return True
        return False

    def _refuse(self, manifest: Manifest, wish: Wish, code: str, /, **facts: object) -> None:
        model = "" if wish.model == AUTO else wish.model
        if any(
            (no.stage, no.engine, no.model, no.reason.code) == (manifest.stage, manifest.name, model, code)
            for no in self.refused
        ):
            return  # told for the cards already
        reason = Phrase(code, engine=manifest.name, model=model, **facts)
        self.refused.append(
            Refusal(manifest.stage, manifest.name, model, "", "cpu", reason, None, None, wish.fixed)
        )

    def _within_disk(self, launched: list[PlannedEngine]) -> list[PlannedEngine]:
        """With a word where each model fits on the disk, and not all that have to be fetched."""
        free = self.facts.disk_free_gib
        cards = {each.model: self._card_of(each) for each in launched}
        away = {model: card for model, card in cards.items() if card and not self.models.ready(model)}
        size = sum(card.size for card in away.values()) / GIB
        if not self.ahead or free is None or size <= free:
            return launched
        why = Phrase("plan_disk_together", size=f"{size:.1f}", free=f"{free:.1f}")
        return [
            replace(each, reasons=(*each.reasons, why)) if each.model in away else each for each in launched
        ]

    def _card_of(self, planned: PlannedEngine) -> ModelCard | None:
        return of_stage(self.engines, planned.stage).get(planned.model) or self.models.card(planned.model)

    def _within_memory(self, launched: list[PlannedEngine]) -> list[PlannedEngine]:
        """Without the spare voice, then the language model, where the main memory is too small for all."""
        budget = main_memory(self.facts, self.config.plan).budget
        shared = self._one_memory
        if of_cards := sum(each.main_gib(shared=shared) for each in launched if each.device != "cpu"):
            budget = less(budget, of_cards)
        for leave in ("spare", "llm", "stt", "tts"):
            taken = [planned for planned in launched if planned.device == "cpu" and planned.need is not None]
            needed = round(sum(planned.memory_gib for planned in taken), 2)
            if needed <= budget.gib:
                break
            for planned in taken:
                if leave == ("spare" if planned.spare else planned.stage):
                    others = round(needed - planned.memory_gib, 2)
                    there = less(budget, others)
                    facts = {"need": planned.need.told if planned.need else "", "budget": there.told}
                    short = f"{needed - budget.gib:.2f}"
                    reason = Phrase("plan_does_not_fit", **facts, short=short)
                    self.refused.append(
                        Refusal(
                            planned.stage,
                            planned.engine,
                            planned.model,
                            planned.quantization,
                            "cpu",
                            reason,
                            planned.need,
                            there.gib,
                            planned.reason == "plan_configured",
                        )
                    )
                    launched = [other for other in launched if other is not planned]
        return launched


@dataclass(frozen=True, slots=True)
class _Weights:
    model: str
    path: Path | None
    sha256: str | None
    card: ModelCard | None
    size: int | None = None
    """Bytes of what the user named by where it lies, where they are known."""

    @property
    def languages(self) -> list[str] | None:
        return None if self.card is None else self.card.languages


def _settings(placed: Placed, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that follow from where a model lies; only those that the engine has are set."""
    candidate, gpu = placed.candidate, placed.rooms[0].gpu
    found: dict[str, Any] = {}
    if candidate.manifest.stage == "llm":
        # A budget in bytes, never a share of the card: others live on it.
        cache = sum(placed.need.of(name) for name in ("kv", "state", "floor"))
        found |= {CACHE_BYTES: round(cache * GIB), KV_DTYPE: candidate.cache}
        if placed.spill is not None:
            found["gpu_layers"] = placed.spill.layers
    half = gpu is None or gpu.capability is None or gpu.capability >= MIN_FLOAT16
    if candidate.card.quantization == "float16" and candidate.kind == "cuda" and half:
        found["compute_type"] = "float16"
    return {name: value for name, value in found.items() if name in options}


def _of_cache(candidate: Candidate, room: Room, mine: Mapping[str, Any]) -> list[Phrase]:
    """Which type its key/value cache has, of engines that know several."""
    if KV_DTYPE not in candidate.manifest.options or room.gpu is None:
        return []
    wanted, card = ".".join(map(str, FP8)), room.gpu.name
    if KV_DTYPE in mine:
        return [Phrase("plan_kv_own", type=candidate.cache, engine=candidate.manifest.name)]
    if candidate.cache == "fp8":
        return [Phrase("plan_kv_fp8", card=card, wanted=wanted)]
    return [Phrase("plan_kv_16", wanted=wanted)]


def _spilled(spill: Spill, memory: Room) -> Phrase:
    gib = f"{spill.in_memory_gib:.2f}"
    if spill.tokens_per_s is None:
        return Phrase("plan_spilled_unknown", gib=gib)
    return Phrase("plan_spilled", gib=gib, rate=f"{spill.tokens_per_s:.0f}", gb_s=f"{memory.gb_s or 0:.0f}")


def _expected(placed: Placed, memory: Room) -> Expected | None:
    card, gb_s = placed.candidate.card, placed.rooms[0].gb_s
    if card.stage != "llm":
        return (
            Expected(card.published_ms, Phrase("plan_published", on=card.published_on))
            if card.published_ms
            else None
        )
    if placed.spill is not None:
        return _by_bandwidth(placed.spill.tokens_per_s, memory.gb_s, gb_s)
    return _by_bandwidth(tokens_per_s(card, gb_s), gb_s)


def _by_bandwidth(rate: float | None, *gb_s: float | None) -> Expected | None:
    if rate is None:
        return None
    memories = " + ".join(f"{each or 0:.0f}" for each in gb_s)
    return Expected(
        CLAUSE_TOKENS * 1000 / rate, Phrase("plan_by_bandwidth", rate=f"{rate:.0f}", gb_s=memories)
    )
