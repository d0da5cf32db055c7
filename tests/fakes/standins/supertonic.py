"""A Supertonic model that weighs one megabyte: the four graphs with the real ones' inputs, outputs and
shapes.

    python -m tests.fakes.standins.supertonic FOLDER [--work N]

What it says is a chord, its loudness and colour drawn from text and voice; 60 ms for each unit of the
alphabet, so that a text of which something was lost is too short by a length that can be worked out. The same
call writes the same bytes."""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RATE_HZ = 44_100
SECONDS_PER_UNIT = 0.06
"""A Hangul syllable is two or three units, a Latin letter one; the tags of its language, ``<ko></ko>``, are
nine."""

CHUNK, FACTOR, DEPTH = 512, 6, 24
FRAME = CHUNK * FACTOR
"""Samples that one frame of the latent becomes."""
WIDTH = DEPTH * FACTOR

TEXT_WIDTH = 256
ROWS = 256
"""Of the table of letters. The alphabet's numbers are taken modulo this."""

TTL, DP = (1, 50, TEXT_WIDTH), (1, 8, 16)
"""Shapes of a voice."""

CHORD_HZ = tuple(periods * RATE_HZ / FRAME for periods in (15, 30, 60, 120))
"""215 Hz to 1.7 kHz, whole periods in a frame: no click between two."""

LOUDNESS = 0.15

WORK_SIZE = 256
"""One unit of work is a product of two matrices of this size, which takes a CPU about a millisecond."""

ALPHABET = (
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x300, 0x370),
    *range(0x1100, 0x1200),
    *range(0x2010, 0x2040),
    *range(0x3040, 0x3100),
)
"""Latin, accents, Hangul in its parts, dashes and quotes, kana. No Hanja, no ⭐, no joiner: as for the real
one, a single sign outside makes the package refuse the whole text."""

VOICES = {"F1": 2, "M1": 1}
"""Name to what its numbers are drawn from."""

FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64

Node = onnx.NodeProto


def build(folder: Path, work: int = 40) -> Path:
    """Write the model into ``folder``, which may exist. ``work``: how much a denoising step computes for
    nothing, so that there is something to be stopped; 0 for none. Returns ``folder``."""
    graphs, voices = folder / "onnx", folder / "voice_styles"
    graphs.mkdir(parents=True, exist_ok=True)
    voices.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for graph in (_duration_predictor(), _text_encoder(rng), _vector_estimator(rng, work), _vocoder(rng)):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        (graphs / f"{graph.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    _write(
        graphs / "tts.json",
        {
            "tts_version": "standin",
            "ae": {"sample_rate": RATE_HZ, "base_chunk_size": CHUNK},
            "ttl": {"chunk_compress_factor": FACTOR, "latent_dim": DEPTH},
        },
    )
    known = set(ALPHABET)
    _write(graphs / "unicode_indexer.json", [code if code in known else -1 for code in range(0x10000)])
    for name, seed in VOICES.items():
        drawn = np.random.default_rng(seed)
        style = {key: _style(drawn, shape) for key, shape in (("style_ttl", TTL), ("style_dp", DP))}
        _write(voices / f"{name}.json", style)
    return folder


def seconds(parts: Sequence[str], speed: float) -> float:
    """How long the parts of a text last: each has its tags, and a stop where it ends in none."""
    units = 0
    for part in parts:
        said = unicodedata.normalize("NFKD", part.strip())
        units += len(said) + len("<ko></ko>") + (said[-1] not in ".!?,")
    return units * SECONDS_PER_UNIT / speed


def _duration_predictor() -> onnx.GraphProto:
    """60 ms × letters. Voice and letters are read, as they are by the real one, and weigh nothing."""
    nodes = [
        _node("ReduceSum", "text_mask axes12", "letters", keepdims=0),
        _node("Mul", "letters seconds", "spoken"),
        _node("ReduceMean", "style_dp", "voice", axes=[1, 2], keepdims=0),
        _node("Cast", "text_ids", "numbers", to=FLOAT),
        _node("ReduceSum", "numbers axis1", "sum", keepdims=0),
        _node("Add", "voice sum", "both"),
        _node("Mul", "both nothing", "weighed"),
        _node("Add", "spoken weighed", "duration"),
    ]
    return helper.make_graph(
        nodes,
        "duration_predictor",
        [
            _value("text_ids", WHOLE, "B", "T"),
            _value("style_dp", FLOAT, "B", *DP[1:]),
            _value("text_mask", FLOAT, "B", 1, "T"),
        ],
        [_value("duration", FLOAT, "B")],
        [
            _constant("axes12", np.array([1, 2])),
            _constant("axis1", np.array([1])),
            _constant("seconds", np.float32(SECONDS_PER_UNIT)),
            _constant("nothing", np.float32(0)),
        ],
    )


def _text_encoder(rng: np.random.Generator) -> onnx.GraphProto:
    """Each letter's row of a table, plus the voice."""
    nodes = [
        _node("Mod", "text_ids rows", "numbers"),
        _node("Gather", "table numbers", "letters"),
        _node("Transpose", "letters", "upright", perm=[0, 2, 1]),
        _node("ReduceMean", "style_ttl", "mean", axes=[1], keepdims=1),
        _node("Transpose", "mean", "voice", perm=[0, 2, 1]),
        _node("Add", "upright voice", "voiced"),
        _node("Mul", "voiced text_mask", "text_emb"),
    ]
    return helper.make_graph(
        nodes,
        "text_encoder",
        [
            _value("text_ids", WHOLE, "B", "T"),
            _value("style_ttl", FLOAT, "B", *TTL[1:]),
            _value("text_mask", FLOAT, "B", 1, "T"),
        ],
        [_value("text_emb", FLOAT, "B", TEXT_WIDTH, "T")],
        [_constant("rows", np.int64(ROWS)), _constant("table", _drawn(rng, ROWS, TEXT_WIDTH))],
    )


def _vector_estimator(rng: np.random.Generator, work: int) -> onnx.GraphProto:
    """A step towards what text and voice mean: ``x + (target - x) / total_step``."""
    nodes = [
        _node("Mul", "text_emb text_mask", "text"),
        _node("ReduceMean", "text", "text_mean", axes=[2], keepdims=0),
        _node("ReduceMean", "style_ttl", "voice", axes=[1], keepdims=0),
        _node("Add", "text_mean voice", "meant"),
        _node("MatMul", "meant into_latent", "flat"),
        _node("Unsqueeze", "flat axis2", "target"),
        _node("Sub", "target noisy_latent", "way"),
        _node("Reshape", "total_step each", "steps"),
        _node("Reshape", "current_step each", "step"),
        _node("Mul", "step nothing", "step_weighed"),
        _node("Add", "steps step_weighed", "divisor"),
        _node("Div", "way divisor", "stride"),
        _node("Add", "noisy_latent stride", "nearer"),
        # The work starts from what the step was given, or it would be computed once when the model is loaded.
        _node("ReduceMean", "voice", "seed", axes=[0, 1], keepdims=0),
        _node("Add", "square seed", "state"),
        Node(
            op_type="Loop",
            input=["rounds", "", "state"],
            output=["worked"],
            attribute=[helper.make_attribute("body", _work())],
        ),
        _node("ReduceMean", "worked", "result", axes=[0, 1], keepdims=0),
        _node("Mul", "result nothing", "result_weighed"),
        _node("Add", "nearer result_weighed", "worked_for"),
        _node("Mul", "worked_for latent_mask", "denoised_latent"),
    ]
    return helper.make_graph(
        nodes,
        "vector_estimator",
        [
            _value("noisy_latent", FLOAT, "B", WIDTH, "L"),
            _value("text_emb", FLOAT, "B", TEXT_WIDTH, "T"),
            _value("style_ttl", FLOAT, "B", *TTL[1:]),
            _value("latent_mask", FLOAT, "B", 1, "L"),
            _value("text_mask", FLOAT, "B", 1, "T"),
            _value("current_step", FLOAT, "B"),
            _value("total_step", FLOAT, "B"),
        ],
        [_value("denoised_latent", FLOAT, "B", WIDTH, "L")],
        [
            _constant("into_latent", _drawn(rng, TEXT_WIDTH, WIDTH)),
            _constant("axis2", np.array([2])),
            _constant("each", np.array([-1, 1, 1])),
            _constant("nothing", np.float32(0)),
            _constant("rounds", np.int64(work)),
            _constant("square", _drawn(rng, WORK_SIZE, WORK_SIZE)),
        ],
    )


def _work() -> onnx.GraphProto:
    """One round: the matrix times itself, kept between -1 and 1."""
    nodes = [
        _node("Identity", "go_on", "go_on_again"),
        _node("MatMul", "before before", "product"),
        _node("Tanh", "product", "after"),
    ]
    size = (WORK_SIZE, WORK_SIZE)
    bool_ = TensorProto.BOOL
    return helper.make_graph(
        nodes,
        "round",
        [_value("number", WHOLE), _value("go_on", bool_), _value("before", FLOAT, *size)],
        [_value("go_on_again", bool_), _value("after", FLOAT, *size)],
    )


def _vocoder(rng: np.random.Generator) -> onnx.GraphProto:
    """Each frame is the chord, its notes as loud as four numbers drawn from the frame say."""
    seconds = np.arange(FRAME) / RATE_HZ
    chord = np.stack([np.sin(2 * np.pi * hz * seconds) for hz in CHORD_HZ]).astype(np.float32)
    nodes = [
        _node("Transpose", "latent", "frames", perm=[0, 2, 1]),
        _node("MatMul", "frames into_notes", "notes"),
        _node("Tanh", "notes", "loudness"),
        _node("MatMul", "loudness chord", "sound"),
        _node("Mul", "sound quieter", "wave"),
        _node("Reshape", "wave row", "wav_tts"),
    ]
    return helper.make_graph(
        nodes,
        "vocoder",
        [_value("latent", FLOAT, "B", WIDTH, "L")],
        [_value("wav_tts", FLOAT, "B", "samples")],
        [
            _constant("into_notes", _drawn(rng, WIDTH, len(CHORD_HZ))),
            _constant("chord", chord),
            _constant("quieter", np.float32(LOUDNESS)),
            _constant("row", np.array([0, -1])),
        ],
    )


def _node(kind: str, inputs: str, output: str, **attributes: Any) -> Node:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def _value(name: str, kind: int, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def _constant(name: str, value: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


def _style(rng: np.random.Generator, shape: Sequence[int]) -> dict[str, object]:
    return {"dims": list(shape), "data": rng.standard_normal(shape).round(3).tolist()}


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=int, default=40)
    given = parser.parse_args()
    print(build(given.folder, given.work))


if __name__ == "__main__":
    main()
