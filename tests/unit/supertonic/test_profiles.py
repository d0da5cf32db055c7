from __future__ import annotations

import numpy as np
import pytest

from ondam_engines.supertonic.networks import NAMES, Style
from ondam_engines.supertonic.pieces import LONGEST
from ondam_engines.supertonic.profiles import LADDER, LONGEST_SHAPE, SHORTEST, TYPICAL, inputs, tensorrt

STYLE = Style(np.zeros((1, 50, 256), np.float32), np.zeros((1, 8, 16), np.float32))


def test_the_range_holds_the_shortest_and_the_longest_text_that_is_sent() -> None:
    assert SHORTEST.ids <= len("<en>a</en>")
    assert LONGEST + len("<en>.</en>") <= LONGEST_SHAPE.ids
    for shape in (TYPICAL, *LADDER):
        assert SHORTEST.ids <= shape.ids <= LONGEST_SHAPE.ids
        assert SHORTEST.frames <= shape.frames <= LONGEST_SHAPE.frames


def test_tensorrt_is_told_the_shapes_of_every_input() -> None:
    assert tensorrt("vocoder", 144, STYLE) == {
        "trt_profile_min_shapes": "latent:1x144x1",
        "trt_profile_opt_shapes": "latent:1x144x64",
        "trt_profile_max_shapes": "latent:1x144x512",
    }
    assert tensorrt("duration_predictor", 144, STYLE)["trt_profile_max_shapes"] == (
        "text_ids:1x320,text_mask:1x1x320,style_dp:1x8x16"
    )
    assert tensorrt("vector_estimator", 144, STYLE)["trt_profile_opt_shapes"] == (
        "style_ttl:1x50x256,noisy_latent:1x144x64,text_emb:1x256x80,latent_mask:1x1x64,text_mask:1x1x80,"
        "current_step:1,total_step:1"
    )


@pytest.mark.parametrize("network", NAMES)
def test_the_shapes_are_those_of_a_real_graph(network: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from tests.fakes.standins.supertonic import build

    folder = build(tmp_path_factory.mktemp("standin"), work=0)
    session = onnxruntime.InferenceSession(folder / "onnx" / f"{network}.onnx")
    told = inputs(network, TYPICAL, 144, STYLE)
    assert {given.name for given in session.get_inputs()} == set(told)
    for given in session.get_inputs():
        fixed = [(want, got) for want, got in zip(given.shape, told[given.name], strict=True) if want != "B"]
        assert all(isinstance(want, str) or want == got for want, got in fixed)
