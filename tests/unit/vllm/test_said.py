from __future__ import annotations

from ondam_engines.vllm.said import Said

PREFIX = "(Worker pid=15330) INFO 11-30 10:43:18 [cpu_model_runner.py:68] "


def test_one_load_is_one_however_many_lines_tell_it() -> None:
    said = Said()
    for line in (
        "Starting to load model /m...",
        "Loading weights took 0.01 seconds",
        "Model loading took 7 GiB",
    ):
        said.hear(PREFIX + line)
    assert said.loads == 1
    said.hear(PREFIX + "Loading drafter model...")
    assert said.loads == 1


def test_every_further_load_counts() -> None:
    said = Said()
    for line in (
        "Starting to load model /m...",
        "Reloading weights inplace...",
        "Starting to load model /m...",
    ):
        said.hear(PREFIX + line)
    assert said.loads == 3


def test_nothing_said_is_nothing_known() -> None:
    said = Said()
    said.hear("")
    said.hear("Loading safetensors checkpoint shards: 100% Completed | 1/1\n")
    assert (said.loads, said.captured, said.no_graphs, said.fallback) == (None, False, None, None)


def test_graphs_that_vllm_took_away_from_itself_are_heard_with_what_is_left() -> None:
    for line, left in (
        (
            "Pooling models do not support full cudagraphs. Overriding cudagraph_mode to PIECEWISE.",
            "PIECEWISE",
        ),
        ("Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability.", "PIECEWISE"),
        (
            "CUDAGraphMode.FULL is not supported; setting cudagraph_mode=FULL_DECODE_ONLY because",
            "FULL_DECODE_ONLY",
        ),
        ("cudagraph_mode FULL is not compatible with compilation mode 0.", None),
    ):
        said = Said()
        said.hear(PREFIX + line)
        assert (said.fallback, said.fell_to, said.no_graphs) == (line, left, None)


def test_the_first_reason_is_kept_without_its_head_and_in_one_line() -> None:
    said = Said()
    said.hear(PREFIX + "Cudagraph is disabled under eager mode  \n")
    said.hear(PREFIX + "Skipping CUDA graph capture. " + "x" * 500)
    assert said.no_graphs == "Cudagraph is disabled under eager mode"
