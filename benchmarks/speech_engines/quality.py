"""How natural a voice sounds: P.808 (opinions of listeners) as DNSMOS estimates it, without listeners.

The model is in the package ``speechmos``, of which nothing else is used: ``pip install --no-deps
--require-hashes -r benchmarks/requirements-speech.txt``. It runs on onnxruntime, which comes with the neural
engine. Spectrum and segments are those of the package's ``dnsmos.py``.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import soxr

from benchmarks.speech import Row, Speech
from benchmarks.speech_engines.timing import Heard, spoken
from speech.audio.pcm import SAMPLE_RATE

ENGLISH: Final = (
    "Good morning, and thank you for calling. How can I help you today?",
    "Your order of three books was sent on Tuesday, and it should arrive by the end of the week.",
    "The train to the coast leaves from platform 4 at 10:15, and costs $23.50.",
    "I am sorry that you had to wait. Would you like me to look for an earlier appointment?",
    "Preheat the oven to 180 degrees, and beat two eggs with a little sugar until they are pale.",
    "She had never seen the sea before, and for a long time she said nothing at all.",
    "Please tell me the last four digits of your card, then I can find the payment.",
    "Rain is expected in the north tonight, while the south stays dry and rather warm.",
)
HINDI: Final = (
    "नमस्ते, फ़ोन करने के लिए धन्यवाद। मैं आपकी क्या मदद कर सकती हूँ?",
    "आपकी किताबें मंगलवार को भेजी गई थीं, और शुक्रवार तक पहुँच जाएँगी।",
    "गाड़ी 10:15 बजे प्लेटफ़ॉर्म 4 से चलेगी, और टिकट ₹250 का है।",
    "आज रात उत्तर में बारिश होगी, लेकिन दक्षिण में मौसम सूखा रहेगा।",
)
MISSING: Final = "No P.808: pip install --no-deps --require-hashes -r benchmarks/requirements-speech.txt, and make neural."
_RATE: Final = 16_000
_SAMPLES: Final = int(9.01 * _RATE)
_WINDOW: Final = 321
_HOP: Final = 160
_BANDS: Final = 120


def _model() -> Any | None:
    package = find_spec("speechmos")
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        return None
    file = Path(package.origin).parent / "dnsmos_models/model_v8.onnx"
    return importlib.import_module("onnxruntime").InferenceSession(str(file))


MODEL: Final = _model()
"""DNSMOS' estimate of P.808, or None where it is not installed."""


async def page(speech: Speech, voice: str) -> Row:
    """A page of sentences, spoken one after the other."""
    texts = HINDI if voice == "hindi" else ENGLISH
    heard = [await spoken(speech, text, voice) for text in texts]
    sound = sum(each.sound for each in heard)
    opinions = [] if MODEL is None else [p808(each) for each in heard]
    return (
        voice,
        str(len(texts)),
        f"{sound:.0f}",
        f"{np.mean(opinions):.2f}" if opinions else "",
        f"{min(opinions):.2f}" if opinions else "",
        f"{sum(each.whole for each in heard) / sound:.2f}",
    )


def p808(heard: Heard) -> float:
    """The estimated opinion, from 1 to 5; a short sound is repeated to fill the 9 s that the model takes."""
    assert MODEL is not None
    sound = np.frombuffer(heard.pcm, dtype=np.int16).astype(np.float32) / 32768
    sound = soxr.resample(sound, SAMPLE_RATE, _RATE)
    while len(sound) < _SAMPLES:
        sound = np.append(sound, sound)
    segments = [
        sound[start : start + _SAMPLES] for start in range(0, len(sound) - _SAMPLES + 1, _RATE)
    ]
    spectra = [_spectrum(each[:-_HOP])[np.newaxis] for each in segments]
    return float(np.mean([MODEL.run(None, {"input_1": each})[0][0][0] for each in spectra]))


def _spectrum(sound: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The mel spectrum in decibels below its peak, as librosa makes it, scaled as the model was trained."""
    padded = np.pad(sound, _WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    power = np.abs(np.fft.rfft(frames * hann)) ** 2 @ _mel_filters().T
    decibels = 10 * np.log10(np.maximum(power, 1e-10))
    decibels = np.maximum(decibels - decibels.max(), -80.0)
    found: npt.NDArray[np.float32] = ((decibels + 40) / 40).astype(np.float32)
    return found


def _mel_filters() -> npt.NDArray[np.float64]:
    """Triangles of equal area, evenly spaced on Slaney's mel scale from 0 to 8000 Hz."""
    edges = _hertz(np.linspace(0, _mel(_RATE / 2), _BANDS + 2))
    bins = np.fft.rfftfreq(_WINDOW, 1 / _RATE)
    slopes = edges[:, np.newaxis] - bins
    widths = np.diff(edges)[:, np.newaxis]
    rising, falling = -slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]
    area = 2 / (edges[2:] - edges[:-2])
    found: npt.NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling)) * area[:, None]
    return found


_LINEAR: Final = 200 / 3
"""Hertz of a mel below 1000 Hz; above, 27 mel are a factor of 6.4."""


def _mel(hertz: float) -> float:
    return hertz / _LINEAR if hertz < 1000 else 15 + 27 * float(np.log(hertz / 1000) / np.log(6.4))


def _hertz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.where(
        mel < 15, mel * _LINEAR, 1000 * 6.4 ** ((np.maximum(mel, 15) - 15) / 27)
    )
    return found
