"""The subprocess that runs Kokoro-82M. It needs numpy and onnxruntime, and nothing of svc.

Arguments: the model, the directory of the voices' styles, the number of threads. ``READY`` carries
the sample rate; an order is answered by its samples, 16-bit little-endian. The marks of an order are
the frames that each token lasts, with those of the model's own first and last one.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from speech.engines.kokoro.files import DURATIONS, model_source
from speech.engines.worker_frames import (
    DATA,
    FAILED,
    READY,
    answer,
    confine,
    marked,
    own_answers,
    serve,
)

RATE = 24_000
"""Samples per second of the model's sound."""

MOST_TOKENS = 510
"""The number of styles of a voice, one for each length of text."""

_STYLE_FIGURES = 256
_MEMORY_BYTES = 6 << 30
_DATA_BYTES = 1 << 19


class _Kokoro:
    def __init__(self, model: Path, voices: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Waiting threads must not spin: the cores are shared with the server.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            model_source(model), options, providers=["CPUExecutionProvider"]
        )
        self._sound = self._session.get_outputs()[0].name
        self.styles = cache(lambda voice: _styles(voices / f"{voice}.bin"))

    def samples(
        self, tokens: list[int], voice: str, speed: float, gain: float
    ) -> tuple[list[int], bytes]:
        """The durations of ``tokens`` in frames, and their sound by ``voice``."""
        tokens = tokens[:MOST_TOKENS]
        style = self.styles(voice)[len(tokens) - 1]
        fed = {
            "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": style.reshape(1, _STYLE_FIGURES),
            "speed": np.array([speed], dtype=np.float32),
        }
        sound, durations = self._session.run([self._sound, DURATIONS], fed)
        loud = np.clip(np.asarray(sound).ravel() * gain, -1.0, 1.0)
        frames = np.asarray(durations).ravel().tolist()
        return frames, np.rint(loud * 32767).astype("<i2").tobytes()


def _styles(path: Path) -> NDArray[np.float32]:
    return np.fromfile(path, dtype="<f4").reshape(MOST_TOKENS, _STYLE_FIGURES)


def main(model: str, voices: str, threads: str) -> int:
    """Serve orders until standard input ends; return the exit status of the process."""
    confine(_MEMORY_BYTES)
    answers = own_answers()
    try:
        kokoro = _Kokoro(Path(model), Path(voices), int(threads))
    except Exception as error:
        answer(answers, FAILED, f"the model cannot be loaded ({type(error).__name__})".encode())
        return 1
    answer(answers, READY, str(RATE).encode())

    def speak(order: dict[str, Any]) -> str | None:
        try:
            frames, said = kokoro.samples(
                order["tokens"], order["voice"], order["speed"], order["gain"]
            )
        except OSError:
            return "the voice's file cannot be read"
        except Exception as error:
            return f"the model failed ({type(error).__name__})"
        if order["marks"]:
            said = marked(frames, said)
        for at in range(0, len(said), _DATA_BYTES):
            answer(answers, DATA, said[at : at + _DATA_BYTES])
        return None

    serve(answers, speak)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
