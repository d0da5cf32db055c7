"""The shapes that the networks are prepared for. TensorRT takes half a minute and more for one that it has
never seen; prepared for a range, it takes milliseconds for all within."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ondam_engines.supertonic.networks import Style
from ondam_engines.supertonic.pieces import LONGEST

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one part of a text."""

    ids: int
    """Units of the alphabet, tags and stop included."""
    frames: int
    """Of sound, 70 ms each at 44.1 kHz."""


SHORTEST = Shape(ids=10, frames=1)
"""One letter between the tags of its language: ``<en>a.</en>`` is 11."""

TYPICAL = Shape(ids=80, frames=64)
"""A clause: 25 Hangul syllables or 70 Latin letters, four and a half seconds. TensorRT chooses for this
one."""

LONGEST_SHAPE = Shape(ids=LONGEST + 20, frames=512)
"""What ``pieces`` cuts at, with tags and stop, and 36 seconds: 300 units last 20 to 25."""

LADDER = tuple(
    Shape(ids, frames) for ids, frames in ((16, 8), (32, 24), (48, 40), (80, 64), (128, 112), (224, 192))
)
"""Clauses as they are sent, each computed once before the first user asks."""


def inputs(network: str, shape: Shape, width: int, style: Style) -> Mapping[str, Dims]:
    """The dimensions of each input of ``network``. ``width``: of a frame of the latent."""
    ids, frames = shape.ids, shape.frames
    text = {"text_ids": (1, ids), "text_mask": (1, 1, ids)}
    ttl = {"style_ttl": tuple(style.ttl.shape)}
    match network:
        case "duration_predictor":
            return text | {"style_dp": tuple(style.dp.shape)}
        case "text_encoder":
            return text | ttl
        case "vector_estimator":
            return ttl | {
                "noisy_latent": (1, width, frames),
                # What the text encoder gives is as wide as the voice.
                "text_emb": (1, style.ttl.shape[2], ids),
                "latent_mask": (1, 1, frames),
                "text_mask": (1, 1, ids),
                "current_step": (1,),
                "total_step": (1,),
            }
        case "vocoder":
            return {"latent": (1, width, frames)}
    raise ValueError(f"{network!r} is no network of Supertonic")


def tensorrt(network: str, width: int, style: Style) -> dict[str, str]:
    """The options of TensorRT's provider that prepare ``network`` for every shape that will be asked for."""

    def told(shape: Shape) -> str:
        found = inputs(network, shape, width, style).items()
        return ",".join(f"{name}:{'x'.join(map(str, dims))}" for name, dims in found)

    return {
        "trt_profile_min_shapes": told(SHORTEST),
        "trt_profile_opt_shapes": told(TYPICAL),
        "trt_profile_max_shapes": told(LONGEST_SHAPE),
    }
