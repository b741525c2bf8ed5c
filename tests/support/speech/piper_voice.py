"""Makes an untrained Piper voice. Run it with the Python of ``.venv-clients``.

argv: a directory. A tiny model with the inputs and the output of Piper's: each phoneme is a tone of its
own. What it says is no language, but the server around it is Piper as it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP

RATE = 22_050
SYMBOLS = 256
TONE = 1500
"""Samples of one phoneme."""


def tones() -> np.ndarray:
    """One row for each phoneme."""
    seconds = np.arange(TONE) / RATE
    rows = [np.sin(2 * np.pi * (90 + 7 * n) * seconds) for n in range(SYMBOLS)]
    table: np.ndarray = (0.25 * np.hanning(TONE) * np.stack(rows)).astype(np.float32)
    return table


def model() -> onnx.ModelProto:
    """The tones of the phonemes one after another; the other inputs have no effect."""
    nodes = [
        helper.make_node("Gather", ["tones", "input"], ["rows"], axis=0),
        helper.make_node("Reshape", ["rows", "shape"], ["joined"]),
        helper.make_node("ReduceSum", ["scales"], ["scale"], keepdims=0),
        helper.make_node("Cast", ["input_lengths"], ["lengths"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["lengths"], ["length"], keepdims=0),
        helper.make_node("Add", ["scale", "length"], ["unused"]),
        helper.make_node("Mul", ["unused", "zero"], ["nothing"]),
        helper.make_node("Add", ["joined", "nothing"], ["output"]),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, ["batch", "phonemes"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, ["batch"]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, None)
    constants = [
        numpy_helper.from_array(tones(), "tones"),
        numpy_helper.from_array(np.array([1, 1, 1, -1], np.int64), "shape"),
        numpy_helper.from_array(np.array(0, np.float32), "zero"),
    ]
    graph = helper.make_graph(nodes, "tones", inputs, [output], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made


def description() -> dict[str, object]:
    """The JSON file beside the model."""
    return {
        "audio": {"sample_rate": RATE, "quality": "low"},
        "espeak": {"voice": "en-us"},
        "phoneme_type": "espeak",
        "num_symbols": SYMBOLS,
        "num_speakers": 1,
        "speaker_id_map": {},
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "phoneme_id_map": {name: list(ids) for name, ids in DEFAULT_PHONEME_ID_MAP.items()},
        "language": {"code": "en_US"},
    }


if __name__ == "__main__":
    data = Path(sys.argv[1])
    voices = data / "voices"
    voices.mkdir(parents=True)
    onnx.save(model(), str(voices / "en_US-tiny-low.onnx"))
    (voices / "en_US-tiny-low.onnx.json").write_text(json.dumps(description()))
    settings = {"api_default_voice": "en_US-tiny-low", "voices_dir": str(voices), "device": "cpu"}
    (data / "settings.json").write_text(json.dumps(settings))
