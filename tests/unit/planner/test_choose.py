from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ondam import config as configuration
from ondam.config import Config
from ondam.errors import ConfigError, ModelError
from ondam.models.card import ModelCard
from ondam.planner.choose import choose, share_threads
from ondam.planner.facts import Facts
from ondam.planner.plan import OutsideEngine, Plan
from ondam.supervisor.manifest import EngineFolder, Manifest
from ondam.types import Stage

TWO_CORES = Facts(2, 4, "a cpu", frozenset({"avx2"}), 8000, "linux", "x86_64")


class Shelf:
    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def find(self, model_id: str) -> tuple[Path, str | None]:
        if model_id not in self.ids:
            raise ModelError("model_unknown", id=model_id)
        return Path("/models") / model_id, "a" * 64

    def ready(self, model_id: str) -> bool:
        return model_id in self.ids

    def card(self, model_id: str) -> ModelCard | None:
        return None

    def weights(self, path: Path) -> dict[str, int]:
        return {}


ALL = Shelf("whisper-base", "tiny-en", "smollm2-135m-instruct", "joe")


def card(name: str, stage: Stage, *languages: str) -> dict[str, Any]:
    part = {"package": "p", "version": "1", "sha256": "a" * 64, "member": "m"}
    file = {"path": "m", "size": 1, "sha256": "a" * 64, "parts": [part]}
    return {"id": name, "stage": stage, "languages": list(languages), "licence": "MIT", "files": [file]}


def engine(
    name: str, stage: Stage, languages: list[str], *models: dict[str, Any], **options: Any
) -> EngineFolder:
    manifest = Manifest.model_validate(
        {
            "name": name,
            "stage": stage,
            "protocol": "openai" if stage == "llm" else "wyoming",
            "licence": "MIT",
            "summary_en": "-",
            "summary_ko": "-",
            "launch": {"command": ["x"]},
            "environment": {"locks": {"cpu": "l"}},
            "capabilities": {"languages": languages},
            "needs": {"memory_mib": 1},
            "limits": {"busy_after_cancel_ms": 1},
            "options": options,
            "models": list(models),
        }
    )
    return EngineFolder(Path("/engines") / name, manifest)


ENGINES = {
    found.name: found
    for found in (
        engine(
            "faster_whisper",
            "stt",
            ["ko", "en"],
            card("whisper-base", "stt", "ko", "en"),
            card("tiny-en", "stt", "en"),
            beam_size=1,
            compute_type="int8",
            temperature=0.5,
        ),
        engine("llama_server", "llm", ["ko", "en"], card("smollm2-135m-instruct", "llm", "en")),
        engine("piper", "tts", ["en"], card("joe", "tts", "en")),
        engine("espeak", "tts", ["ko", "en"]),
    )
}


def config(language: str = "en", **tables: Any) -> Config:
    return configuration.load(None, {"language": language, **tables})


def plan(language: str = "en", *, known: dict[str, EngineFolder] = ENGINES, **tables: Any) -> Plan:
    return choose(TWO_CORES, config(language, **tables), known, ALL)


def problems(language: str = "en", **tables: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        plan(language, **tables)
    return str(raised.value)


def test_english_gets_piper_with_espeak_as_spare() -> None:
    stt, llm, tts, spare = plan().launched
    assert (stt.engine, stt.model, stt.model_path) == (
        "faster_whisper",
        "whisper-base",
        Path("/models/whisper-base"),
    )
    assert (llm.engine, llm.model_sha256, llm.reason) == ("llama_server", "a" * 64, "plan_shipped")
    assert (tts.engine, tts.model, tts.spare, tts.reason) == (
        "piper",
        "joe",
        False,
        "plan_voice_for_language",
    )
    assert (spare.engine, spare.model_path, spare.spare, spare.reason) == ("espeak", None, True, "plan_spare")


def test_korean_gets_espeak_once() -> None:
    plan_ko = plan("ko")
    assert [e.engine for e in plan_ko.launched] == ["faster_whisper", "llama_server", "espeak"]
    assert {e.language for e in plan_ko.launched} == {"ko"}
    assert not plan_ko.launched[2].spare


def test_a_language_model_that_was_not_taught_the_language_is_used_and_said_so() -> None:
    assert plan("ko").launched[1].reason == "plan_shipped_other_language"
    assert plan("ko", llm={"engine": "llama_server"}).launched[1].reason == "plan_model_other_language"


def test_a_voice_that_is_part_of_its_program_loads_no_other() -> None:
    told = problems(tts={"engine": "espeak", "model": "joe"})
    assert 'tts.model: "joe" is not a model for espeak; for: piper' in told


def test_a_file_on_the_disk_is_taken_as_it_is() -> None:
    llm = plan(llm={"model": "/tmp/some.gguf"}).launched[1]
    assert (llm.model, llm.model_path, llm.model_sha256) == ("/tmp/some.gguf", Path("/tmp/some.gguf"), None)
    assert plan(llm={"model": "~/x.gguf"}).launched[1].model_path == Path("~/x.gguf").expanduser()


def test_an_address_launches_nothing_for_its_stage() -> None:
    outside = plan(
        stt={"address": "tcp://nas:10300"},
        llm={"url": "http://rack:8000/v1", "name": "big"},
        tts={"spare": ""},
    )
    assert [e.engine for e in outside.launched] == ["piper"]
    assert outside.outside == (
        OutsideEngine("stt", "tcp://nas:10300"),
        OutsideEngine("llm", "http://rack:8000/v1", "big", temperature=0.0),
    )


def test_an_address_is_refused_where_the_plan_requires_a_report() -> None:
    text = problems(stt={"address": "tcp://nas:10300"}, supervisor={"policy": "require"})
    assert "stt.address" in text and '"require"' in text


def test_an_address_of_the_wrong_kind_is_refused() -> None:
    assert "llm.url" in problems(llm={"url": "tcp://nas:1"})


def test_an_unknown_engine_is_refused_with_the_nearest_name() -> None:
    assert 'stt.engine: no engine is called "faster_wisper"; did you mean "faster_whisper"?' in problems(
        stt={"engine": "faster_wisper"}
    )


def test_an_engine_for_another_stage_is_refused() -> None:
    assert 'llm.engine: "piper" is an engine for tts, not for llm' in problems(llm={"engine": "piper"})


def test_a_voice_that_does_not_know_the_language_is_refused_and_others_named() -> None:
    text = problems("ko", tts={"engine": "piper"})
    assert 'tts.engine: "piper" does not know the language "ko"; these do: espeak' in text


def test_a_model_that_does_not_know_the_language_is_refused() -> None:
    assert 'stt.model: "tiny-en" does not know the language "ko"' in problems("ko", stt={"model": "tiny-en"})


def test_an_unknown_model_is_the_catalogs_to_refuse() -> None:
    with pytest.raises(ModelError):
        plan(llm={"model": "smollm3"})


def test_settings_of_an_engine_are_checked_against_its_manifest() -> None:
    text = problems(
        engines={"faster_whisper": {"beamsize": 2, "compute_type": 8, "beam_size": True}, "fast_whisper": {}}
    )
    assert 'engines.faster_whisper.beamsize: unknown key; did you mean "beam_size"?' in text
    assert "engines.faster_whisper.compute_type: should be str (found 8)" in text
    assert "engines.faster_whisper.beam_size: should be int (found True)" in text
    assert 'engines.fast_whisper: no such engine; did you mean "faster_whisper"?' in text


def test_problems_are_told_in_the_readers_language() -> None:
    with pytest.raises(ConfigError) as raised:
        plan("ko", tts={"engine": "piper"}, stt={"engine": "faster_wisper"}, engines={"x": {}})
    assert raised.value.message("ko").text.splitlines() == [
        "config.toml 파일을 사용할 수 없습니다:",
        '  stt.engine: "faster_wisper"(이)라는 엔진이 없습니다. "faster_whisper"을(를) 찾으시나요?',
        '  tts.engine: "piper"은(는) "ko" 언어를 지원하지 않습니다. 지원하는 것: espeak',
        "  engines.x: 그런 엔진이 없습니다. 있는 이름: faster_whisper, llama_server, piper, espeak",
    ]


def test_settings_of_an_engine_are_laid_over_its_manifest() -> None:
    stt = plan(engines={"faster_whisper": {"beam_size": 5, "temperature": 1}}).launched[0]
    assert stt.options == {"beam_size": 5, "compute_type": "int8", "temperature": 1}


def test_an_engine_without_models_of_its_own_shares_those_of_its_stage() -> None:
    known = {**ENGINES, "llama_cpp": engine("llama_cpp", "llm", ["ko", "en"])}
    for model in ("auto", "smollm2-135m-instruct"):
        llm = plan(known=known, llm={"engine": "llama_cpp", "model": model}).launched[1]
        assert (llm.engine, llm.model) == ("llama_cpp", "smollm2-135m-instruct")


def test_auto_takes_another_voice_where_the_first_is_not_there() -> None:
    without = {name: found for name, found in ENGINES.items() if name != "piper"}
    assert [e.engine for e in plan(known=without).launched] == ["faster_whisper", "llama_server", "espeak"]


def test_threads_on_two_cores_are_what_measured_best() -> None:
    shares = share_threads(2)
    assert (shares.stt, shares.llm, shares.tts) == (1, 2, 2)


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 6, 8, 16, 64, 128])
def test_recognizer_and_language_model_share_the_cores(cores: int) -> None:
    shares = share_threads(cores)
    assert min(shares.stt, shares.llm, shares.tts) >= 1
    assert max(shares.stt, shares.llm, shares.tts) <= cores
    if cores > 2:
        assert shares.stt + shares.llm <= cores
