from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.models.registry_server import FakeIndex, TinyWheel, file_card, model, serve
from tests.unit.models.test_importing import gguf_bytes

from ondam.cli.models import command
from ondam.errors import ModelError

WHEEL = TinyWheel("tiny-one", {"weights": b"w" * 1_000})
CARD = model("tiny", file_card("weights.bin", (WHEEL, "weights")))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """A home whose catalog knows ``tiny``, and an index that has it."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("ONDAM_HOME", str(tmp_path / "집 home"))
    monkeypatch.setattr("ondam.models.catalog.daemon_models", lambda: [CARD])
    monkeypatch.setattr("ondam.models.catalog.EMBEDDED", ("tiny",))
    with serve(FakeIndex([WHEEL])) as served:
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        yield served


def ondam_models(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def only(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    found = {entry["id"]: entry for entry in json.loads(result.stdout)["models"]}
    return found["tiny"]  # type: ignore[no-any-return]


def test_add_without_a_name_fetches_what_the_shipped_configuration_needs(index: FakeIndex) -> None:
    before = only(ondam_models("list", "--json"))
    assert before["state"] == "missing"
    added = ondam_models("add", "--json")
    assert only(added)["state"] == "whole"
    assert "tiny (tiny-one): done" in added.stderr
    assert Path(str(only(added)["path"])).read_bytes() == b"w" * 1_000
    assert only(ondam_models("verify", "--json"))["state"] == "whole"


def test_list_is_a_table_for_people_in_their_language(
    index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDAM_LANGUAGE", "ko")
    shown = ondam_models("list").stdout
    assert "tiny" in shown
    assert "없음" in shown
    assert shown.splitlines()[0].split() == ["id", "단계", "언어", "MB", "상태", "라이선스"]
    ondam_models("add")
    Path(str(only(ondam_models("list", "--json"))["path"])).write_bytes(b"w")
    told = ondam_models("verify").stdout
    assert "tiny: 손상됨" in told
    assert "weights.bin: 크기가 다름. 기대한 파일: 1,000바이트, sha256 " in told


def test_an_unknown_name_is_refused_before_anything_is_fetched(index: FakeIndex) -> None:
    result = ondam_models("add", "tiny", "tinny")
    assert isinstance(result.exception, ModelError)
    assert str(result.exception) == 'No model is called "tinny"; did you mean "tiny"?'
    assert index.asked == []


def test_an_import_is_listed_verified_and_removed(index: FakeIndex, tmp_path: Path) -> None:
    path = tmp_path / "나의 모델.gguf"
    path.write_bytes(gguf_bytes())
    imported = ondam_models("import", str(path), "--id", "mine")
    assert 'model = "mine"' in imported.stdout
    listed = {entry["id"]: entry for entry in json.loads(ondam_models("list", "--json").stdout)["models"]}
    assert (listed["mine"]["origin"], listed["mine"]["quantization"]) == ("import", "Q4_K_M")
    assert "mine: whole" in ondam_models("verify").stdout
    removed = json.loads(ondam_models("remove", "mine", "--json").stdout)
    assert removed["id"] == "mine"
    assert removed["freed_bytes"] > path.stat().st_size
    assert not (tmp_path / "집 home/data/models/mine").exists()


@pytest.mark.parametrize("name", ["..", "../tiny", ".downloads", "nothing"])
def test_remove_touches_nothing_but_a_model(index: FakeIndex, name: str) -> None:
    ondam_models("add")
    assert isinstance(ondam_models("remove", name).exception, ModelError)
    assert only(ondam_models("list", "--json"))["state"] == "whole"
