"""From the machine and the configuration to the plan. Pure; every problem is told at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ondam.config import Config
from ondam.errors import ConfigError
from ondam.messages import Phrase, Phrases
from ondam.planner.facts import Facts
from ondam.planner.plan import OutsideEngine, Plan, PlannedEngine
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Language, Stage

AUTO = "auto"

FIRST_VOICE: Mapping[Language, str] = {"en": "piper", "ko": "espeak"}
"""What ``tts.engine = "auto"`` means. No package registry carries a Korean neural voice."""

ANY_LANGUAGE = frozenset({"*", "mul"})
"""In a manifest or a model's card: whatever is asked."""


class ModelLookup(Protocol):
    """Where the weights of a model are."""

    def find(self, model_id: str) -> tuple[Path, str | None]:
        """What an engine is given, and the SHA-256 of its weights file if known. Raises ModelError."""


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


def choose(facts: Facts, config: Config, engines: Mapping[str, EngineFolder], models: ModelLookup) -> Plan:
    """What this machine should run.

    Raises ConfigError with all that is wrong with the configuration's engines, ModelError when weights are
    missing or broken.
    """
    chooser = _Chooser(facts, config, engines, models)
    launched = [*chooser.stage("stt"), *chooser.stage("llm"), *chooser.stage("tts")]
    launched += chooser.spare(launched)
    chooser.look_for_strangers()
    if chooser.problems:
        problems = Phrases(tuple(chooser.problems))
        raise ConfigError("config_problems", origin="config.toml", problems=problems)
    return Plan(tuple(launched), tuple(chooser.outside))


@dataclass
class _Chooser:
    facts: Facts
    config: Config
    engines: Mapping[str, EngineFolder]
    models: ModelLookup
    problems: list[Phrase] = field(default_factory=list)
    outside: list[OutsideEngine] = field(default_factory=list)

    def stage(self, stage: Stage) -> list[PlannedEngine]:
        """The engine of a stage; none when the user named an address, or when there is a problem."""
        address, name, model = self._wish(stage)
        if address:
            self._reach(stage, address)
            return []
        reason = "plan_configured"
        if stage == "tts" and name == AUTO:
            name, reason = self._first_voice(), "plan_voice_for_language"
        manifest = self._manifest(f"{stage}.engine", name, stage)
        return [] if manifest is None else self._planned(manifest, model, reason)

    def spare(self, launched: Iterable[PlannedEngine]) -> list[PlannedEngine]:
        """The last-resort voice, unless it is the first voice anyway."""
        name = self.config.tts.spare
        if not name or any(planned.engine == name for planned in launched):
            return []
        manifest = self._manifest("tts.spare", name, "tts")
        return [] if manifest is None else self._planned(manifest, AUTO, "plan_spare", spare=True)

    def look_for_strangers(self) -> None:
        """Settings of engines that do not exist."""
        for name in self.config.engines:
            if name not in self.engines:
                self._refuse("problem_no_such_engine", name=name, near=_nearest(name, self.engines))

    def _refuse(self, code: str, /, **facts: object) -> None:
        self.problems.append(Phrase(code, **facts))

    def _wish(self, stage: Stage) -> tuple[str, str, str]:
        config = self.config
        match stage:
            case "stt":
                return config.stt.address, config.stt.engine, config.stt.model
            case "llm":
                return config.llm.url, config.llm.engine, config.llm.model
            case "tts":
                return config.tts.address, config.tts.engine, config.tts.model

    def _reach(self, stage: Stage, address: str) -> None:
        key = "llm.url" if stage == "llm" else f"{stage}.address"
        schemes = ("http://", "https://", "unix:///") if stage == "llm" else ("unix:///", "tcp://")
        if not address.startswith(schemes):
            self._refuse("problem_address", key=key, address=address, schemes=", ".join(schemes))
        elif self.config.supervisor.policy == "require":
            # What it runs on cannot be compared with anything (docs/engines.md, "unreported").
            self._refuse("problem_unreported", key=key)
        else:
            name = self.config.llm.name if stage == "llm" else ""
            self.outside.append(OutsideEngine(stage, address, name, self.config.supervisor.policy))

    def _first_voice(self) -> str:
        language = self.config.spoken_language
        first = FIRST_VOICE[language]
        able = [
            name
            for name, engine in self.engines.items()
            if engine.manifest.stage == "tts" and _speaks(engine.manifest.capabilities.languages, language)
        ]
        return first if first in able or not able else able[0]

    def _manifest(self, key: str, name: str, stage: Stage) -> Manifest | None:
        """The engine called ``name``, if it can do this stage in the user's language."""
        language = self.config.spoken_language
        of_stage = {n: e.manifest for n, e in self.engines.items() if e.manifest.stage == stage}
        manifest = self.engines[name].manifest if name in self.engines else None
        if manifest is None:
            self._refuse("problem_engine_unknown", key=key, name=name, near=_nearest(name, of_stage))
        elif manifest.stage != stage:
            self._refuse("problem_other_stage", key=key, name=name, found=manifest.stage, stage=stage)
        # A language model answers in whatever language it was taught; engines only carry it.
        elif stage != "llm" and not _speaks(manifest.capabilities.languages, language):
            able = [n for n, m in of_stage.items() if _speaks(m.capabilities.languages, language)]
            others = Phrase("near_able", names=", ".join(able)) if able else ""
            self._refuse("problem_language", key=key, name=name, language=language, others=others)
        else:
            return manifest
        return None

    def _planned(
        self, manifest: Manifest, model: str, reason: str, *, spare: bool = False
    ) -> list[PlannedEngine]:
        options = self._options(manifest)
        weights = self._weights(manifest, model)
        if weights is None:
            return []
        stage, language = manifest.stage, self.config.spoken_language
        if stage == "llm" and weights.languages is not None and not _speaks(weights.languages, language):
            reason = "plan_model_other_language"
        return [
            PlannedEngine(
                engine=manifest.name,
                stage=stage,
                model=weights.model,
                model_path=weights.path,
                model_sha256=weights.sha256,
                device="cpu",
                threads=share_threads(self.facts.cores).of(stage),
                language=language,
                options=options,
                policy=self.config.supervisor.policy,
                spare=spare,
                reason=reason,
            )
        ]

    def _weights(self, manifest: Manifest, model: str) -> _Weights | None:
        """What the engine loads; None when there is a problem."""
        language, key = self.config.spoken_language, f"{manifest.stage}.model"
        if _is_path(model):
            return _Weights(model, Path(model).expanduser(), None, None)
        of_stage = {
            card.id: card
            for engine in self.engines.values()
            for card in engine.manifest.models
            if card.stage == manifest.stage
        }
        if model == AUTO:
            if not manifest.models and manifest.stage == "tts":
                # Its voice is part of the program.
                return _Weights(manifest.name, None, None, None)
            own = manifest.models or list(of_stage.values())
            able = [card.id for card in own if manifest.stage == "llm" or _speaks(card.languages, language)]
            if not able:
                self._refuse("problem_no_model", key=key, name=manifest.name, language=language)
                return None
            model = able[0]
        card = of_stage.get(model)
        spoken = card.languages if card else None
        if manifest.stage != "llm" and spoken is not None and not _speaks(spoken, language):
            self._refuse("problem_language", key=key, name=model, language=language, others="")
            return None
        if self.problems:
            return None  # the plan is refused anyway; weights are not looked for in vain
        path, sha256 = self.models.find(model)
        return _Weights(model, path, sha256, spoken)

    def _options(self, manifest: Manifest) -> dict[str, Any]:
        """The manifest's, with the user's on top."""
        options = dict(manifest.options)
        for name, value in self.config.engines.get(manifest.name, {}).items():
            key = f"engines.{manifest.name}.{name}"
            if name not in options:
                self._refuse("problem_unknown_key", key=key, near=_nearest(name, options))
            elif not _fits(value, options[name]):
                wanted = type(options[name]).__name__
                self._refuse("problem_kind", key=key, wanted=wanted, found=repr(value))
            else:
                options[name] = value
        return options


@dataclass(frozen=True, slots=True)
class _Weights:
    model: str
    path: Path | None
    sha256: str | None
    languages: list[str] | None


def _speaks(languages: Iterable[str], language: Language) -> bool:
    return not ANY_LANGUAGE.isdisjoint(languages) or language in languages


def _is_path(model: str) -> bool:
    return "/" in model or model.startswith("~") or model.endswith(".gguf")


def _fits(value: object, default: object) -> bool:
    """The same kind of value as the manifest's; a whole number is a number, a truth value is none."""
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _nearest(name: str, known: Iterable[str]) -> Phrase:
    names = list(known)
    if found := difflib.get_close_matches(name, names, n=1, cutoff=0.5):
        return Phrase("near_name", name=found[0])
    return Phrase("near_known", names=", ".join(names) or "–")
