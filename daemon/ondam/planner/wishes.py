"""What the configuration asks for, held against what there is: every name, address and setting. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ondam.config import Config
from ondam.messages import Phrase
from ondam.planner.candidates import AUTO, Wish, loads, of_stage, speaks
from ondam.planner.plan import OutsideEngine
from ondam.planner.policy import POLICIES, POLICY
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Stage


@dataclass
class Wishes:
    """Reads them; what is wrong is gathered in ``problems``."""

    config: Config
    engines: Mapping[str, EngineFolder]
    problems: list[Phrase] = field(default_factory=list)
    outside: list[OutsideEngine] = field(default_factory=list)

    def of(self, stage: Stage) -> Wish | None:
        """What is wanted of a stage; None where the user named an address for it."""
        config = self.config
        address, wish = {
            "stt": (config.stt.address, Wish(config.stt.engine, config.stt.model)),
            "llm": (config.llm.url, Wish(config.llm.engine, config.llm.model)),
            "tts": (config.tts.address, Wish(config.tts.engine, config.tts.model)),
        }[stage]
        if address:
            self._reach(stage, address)
            return None
        manifest = None if wish.engine == AUTO else self.manifest(f"{stage}.engine", wish.engine, stage)
        if wish.model != AUTO and (manifest is not None or wish.engine == AUTO):
            self._model(stage, wish, manifest)
        return wish

    def manifest(self, key: str, name: str, stage: Stage) -> Manifest | None:
        """The engine called ``name``, if it can do this stage in the user's language."""
        language = self.config.spoken_language
        there = {n: e.manifest for n, e in self.engines.items() if e.manifest.stage == stage}
        manifest = self.engines[name].manifest if name in self.engines else None
        if manifest is None:
            self.tell("problem_engine_unknown", key=key, name=name, near=nearest(name, there))
        elif manifest.stage != stage:
            self.tell("problem_other_stage", key=key, name=name, found=manifest.stage, stage=stage)
        # A language model answers in whatever language it was taught; engines only carry it.
        elif stage != "llm" and not speaks(manifest.capabilities.languages, language):
            able = [n for n, m in there.items() if speaks(m.capabilities.languages, language)]
            others = Phrase("near_able", names=", ".join(able)) if able else ""
            self.tell("problem_language", key=key, name=name, language=language, others=others)
        else:
            return manifest
        return None

    def settings(self) -> dict[str, dict[str, Any]]:
        """Each engine's options: the manifest's, with the user's on top."""
        return {name: self._options(folder.manifest) for name, folder in self.engines.items()}

    def strangers(self) -> None:
        """Settings of engines that do not exist."""
        for name in self.config.engines:
            if name not in self.engines:
                self.tell("problem_no_such_engine", name=name, near=nearest(name, self.engines))

    def tell(self, code: str, /, **facts: object) -> None:
        """One more problem."""
        self.problems.append(Phrase(code, **facts))

    def _reach(self, stage: Stage, address: str) -> None:
        key = "llm.url" if stage == "llm" else f"{stage}.address"
        schemes = ("http://", "https://", "unix:///") if stage == "llm" else ("unix:///", "tcp://")
        if not address.startswith(schemes):
            self.tell("problem_address", key=key, address=address, schemes=", ".join(schemes))
        elif self.config.supervisor.policy == "require":
            # What it runs on cannot be compared with anything (docs/engines.md, "unreported").
            self.tell("problem_unreported", key=key)
        else:
            name = self.config.llm.name if stage == "llm" else ""
            policy, language = self.config.supervisor.policy, self.config.spoken_language
            outside = OutsideEngine(stage, address, name, policy, language)
            if stage == "llm":
                llm = self.config.llm
                patience_s = max(outside.patience_s, llm.first_token_timeout_s)
                outside = replace(outside, temperature=llm.temperature, patience_s=patience_s)
            self.outside.append(outside)

    def _model(self, stage: Stage, wish: Wish, manifest: Manifest | None) -> None:
        """A model that is known must be one that the engine loads, or that some engine here loads."""
        card = of_stage(self.engines, stage).get(wish.model)
        if card is None:
            return
        key, language = f"{stage}.model", self.config.spoken_language
        if stage != "llm" and not speaks(card.languages, language):
            self.tell("problem_language", key=key, name=card.id, language=language, others="")
            return
        able = [n for n, e in self.engines.items() if e.manifest.stage == stage and loads(e.manifest, card)]
        if manifest is not None and manifest.name not in able:
            names = ", ".join(able or card.served_by) or "–"
            self.tell("problem_not_loaded", key=key, name=card.id, engine=manifest.name, names=names)
        elif not able:
            self.tell("problem_no_engine", key=key, name=card.id, names=", ".join(card.served_by) or "–")

    def _options(self, manifest: Manifest) -> dict[str, Any]:
        options = dict(manifest.options)
        for name, value in self.config.engines.get(manifest.name, {}).items():
            key = f"engines.{manifest.name}.{name}"
            if name == POLICY:
                if value not in POLICIES:
                    self.tell("problem_kind", key=key, wanted=" | ".join(POLICIES), found=repr(value))
            elif name not in options:
                self.tell("problem_unknown_key", key=key, near=nearest(name, options))
            elif not _fits(value, options[name]):
                wanted = type(options[name]).__name__
                self.tell("problem_kind", key=key, wanted=wanted, found=repr(value))
            elif name in LEAST and value < LEAST[name]:
                self.tell("problem_least", key=key, least=LEAST[name], found=repr(value))
            else:
                options[name] = value
        return options


LEAST = {
    "context_length": 1,
    "max_model_len": 1,
    "parallel": 1,
    "max_num_seqs": 1,
    "kv_cache_memory_bytes": 0,
}
"""Options that memory is counted by, wherever an engine has them."""


def _fits(value: object, default: object) -> bool:
    """The same kind of value as the manifest's; a whole number is a number, a truth value is none."""
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def nearest(name: str, known: Iterable[str]) -> Phrase:
    """The known name that was probably meant, else all of them."""
    names = list(known)
    if found := difflib.get_close_matches(name, names, n=1, cutoff=0.5):
        return Phrase("near_name", name=found[0])
    return Phrase("near_known", names=", ".join(names) or "–")
