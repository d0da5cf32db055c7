from __future__ import annotations

from pathlib import Path

import pytest

from ondam_engines.kit import launch

LEAST = ["--socket", "/run/a.sock", "--report", "/run/a.json"]


def test_every_placeholder_arrives() -> None:
    given = [
        *LEAST, "--model", "/models/a", "--model-id", "a", "--device", "cuda:0", "--threads", "4",
        "--language", "ko", "--options", '{"speed": 1.2}', "--cache", "/data/caches/a",
    ]  # fmt: skip
    assert launch.parse(given) == launch.Launch(
        Path("/run/a.sock"), Path("/run/a.json"), Path("/models/a"), "a", "cuda:0", 4, "ko", {"speed": 1.2},
        Path("/data/caches/a"),
    )  # fmt: skip


def test_an_engine_without_weights_gets_none() -> None:
    assert launch.parse([*LEAST, "--model", ""]).model is None


@pytest.mark.parametrize(
    "wrong",
    [
        ["--threads", "0"],
        ["--threads", "two"],
        ["--options", "[]"],
        ["--options", "{"],
        ["--mod", "/models/a"],
        ["--unknown", "1"],
    ],
)
def test_a_wrong_argument_ends_the_process_with_2(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.parse([*LEAST, *wrong])
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err
