"""The subprocess that runs Kokoro-82M. It needs numpy and onnxruntime, and nothing of svc.

Arguments: the model, the directory of the voices' styles, the number of threads, the niceness.
``READY`` carries the sample rate; an order is answered by its samples, 16-bit little-endian. The marks
of an order are the frames that each token lasts, with those of the model's own first and last one.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from speech.audio.equaliser import equalised
from speech.engines.kokoro.files import (
    DURATIONS,
    HARMONICS,
    PITCH_SCALE,
    USUAL_PITCH_SCALE,
    model_source,
)
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

    def samples(self, order: dict[str, Any]) -> tuple[list[int], bytes]:
        """The durations of an order's tokens in frames, and their sound."""
        tokens = order["tokens"][:MOST_TOKENS]
        fed = {
            "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": self._style(order["styles"], len(tokens)).reshape(1, _STYLE_FIGURES),
            "speed": np.array([order["speed"]], dtype=np.float32),
            **_pitch_inputs(order["pitch"]),
        }
        sound, durations = self._session.run([self._sound, DURATIONS], fed)
        loud = np.clip(np.asarray(sound).ravel() * order["gain"], -1.0, 1.0)
        made = np.rint(loud * 32767).astype("<i2")
        if order["eq_db"]:
            made = equalised(made, order["eq_hz"], order["eq_db"], RATE)
        return np.asarray(durations).ravel().tolist(), made.tobytes()

    def _style(self, mixed: list[tuple[str, float]], length: int) -> NDArray[np.float32]:
        """The style of a text of ``length`` tokens: those of the voices, by their shares."""
        style = np.zeros(_STYLE_FIGURES, dtype=np.float32)
        for voice, share in mixed:
            style += self.styles(voice)[length - 1] * np.float32(share)
        return style


def _pitch_inputs(pitch: float) -> dict[str, NDArray[np.float32]]:
    """The model's inputs that multiply the pitch by ``pitch``; none for 1: the model has constants."""
    if pitch == 1:
        return {}
    harmonics = np.arange(1, 10, dtype=np.float32) * np.float32(pitch)
    scale = np.array(USUAL_PITCH_SCALE * pitch, dtype=np.float32)
    return {HARMONICS: harmonics.reshape(1, 9, 1), PITCH_SCALE: scale}


def _styles(path: Path) -> NDArray[np.float32]:
    return np.fromfile(path, dtype="<f4").reshape(MOST_TOKENS, _STYLE_FIGURES)


def main(model: str, voices: str, threads: str, niceness: str) -> int:
    """Serve orders until standard input ends; return the exit status of the process."""
    confine(_MEMORY_BYTES, int(niceness))
    answers = own_answers()
    try:
        kokoro = _Kokoro(Path(model), Path(voices), int(threads))
    except Exception as error:
        answer(answers, FAILED, f"the model cannot be loaded ({type(error).__name__})".encode())
        return 1
    answer(answers, READY, str(RATE).encode())

    def speak(order: dict[str, Any]) -> str | None:
        try:
            frames, said = kokoro.samples(order)
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
    sys.exit(main(*sys.argv[1:5]))
