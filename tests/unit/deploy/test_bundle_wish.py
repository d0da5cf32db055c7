"""What a bundle is to hold, and whether the target can begin with that."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from ondam.deploy.bundle_create import Wish
from ondam.deploy.bundle_target import MACHINES
from ondam.deploy.bundle_wish import wish_for
from ondam.errors import BundleError
from ondam.places import places


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def wish(**asked: Any) -> Wish:
    whole = dict.fromkeys(("facts", "config", "machine", "python", "glibc", "carry", "wheel"))
    return wish_for(places(), **{"engines": (), "models": (), "debian": False, **whole, **asked})


EMBEDDED = ["faster_whisper", "llama_server", "piper", "espeak"]


def test_without_names_it_holds_what_the_plan_needs_and_nothing_is_lacking(here: Path) -> None:
    made = wish()
    assert [engine.name for engine, _ in made.engines] == EMBEDDED
    assert made.lacking == []


def test_an_engine_that_the_target_would_plan_and_will_not_find_is_told(here: Path) -> None:
    names = [name if name != "llama_server" else "llama_cpp" for name in EMBEDDED]
    models = ("whisper-base", "smollm2-135m-instruct", "joe")
    assert wish(engines=names, models=models).lacking == ["llama_server:cpu"]

    config = here / "site.toml"
    config.write_text('[llm]\nengine = "llama_cpp"\nmodel = "smollm2-135m-instruct"\n', "utf-8")
    assert wish(engines=names, models=models, config=config).lacking == []


def facts_of(folder: Path, arch: str, *gpus: dict[str, object]) -> str:
    """A file of another machine's facts."""
    told = {"os": "linux", "arch": arch, "cpu": {"cores": 8, "flags": ["avx2"]}, "ram_gib": 64, "gpus": gpus}
    path = folder / "facts.json"
    path.write_text(json.dumps(told), "utf-8")
    return str(path)


CARD = {
    "name": "NVIDIA L4",
    "vram_gib": 24,
    "free_gib": 24,
    "driver": "580.65.06",
    "compute_capability": "8.9",
}


def test_an_engine_without_a_variant_comes_as_the_targets_plan_has_it(here: Path) -> None:
    facts = facts_of(here, OWN, CARD)
    planned = {engine.name: variant for engine, variant in wish(facts=facts).engines}
    assert planned["faster_whisper"] == "cu12"
    named = wish(facts=facts, engines=list(planned))
    assert ({engine.name: variant for engine, variant in named.engines}, named.lacking) == (planned, [])
    other = wish(facts=facts, engines=[*(set(planned) - {"faster_whisper"}), "faster_whisper:cpu"])
    assert other.lacking == ["faster_whisper:cu12"], "what it holds would not be used"


OWN = MACHINES.get(platform.machine(), platform.machine())
OTHER = "aarch64" if OWN == "x86_64" else "x86_64"


def test_debian_packages_are_not_carried_to_another_processor(here: Path) -> None:
    assert wish(debian=True, machine=OWN).debian
    for asked in ({"machine": OTHER}, {"facts": facts_of(here, OTHER)}):
        with pytest.raises(BundleError) as caught:
            wish(debian=True, **asked)
        assert caught.value.code == "bundle_debian_elsewhere"
        assert "--no-debian" in caught.value.message("ko").next
        made = wish(**asked)
        assert (made.target.machine, made.debian) == (OTHER, ())
