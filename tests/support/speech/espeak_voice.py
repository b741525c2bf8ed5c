"""Voices for tests of clones: espeak-ng in a subprocess, with a profile's voice file and EQ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from speech.engines.espeak.profile import CloneProfile

RATE = 24_000
Audio = npt.NDArray[np.float32]


class EspeakVoice:
    """Speaks with any voice of espeak-ng, or as the clone that a profile describes."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("espeak_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def say(self, text: str, voice: str = "en-us") -> Audio:
        return self._order({"text": text, "voice": voice})

    def speak(self, text: str, profile: CloneProfile) -> bytes:
        """Speak to 16-bit PCM at 24 000 Hz, as ``calibrate`` requires."""
        audio = self._order(
            {
                "text": text,
                "voice": "en-us",
                "pitch": profile.pitch,
                "pitch_range": profile.pitch_range,
                "warp": profile.warp,
            }
        )
        audio = equalised(audio, profile)
        return (audio * 32767).astype("<i2").tobytes()

    def close(self) -> None:
        self._child.communicate(timeout=60)

    def _order(self, order: dict[str, object]) -> Audio:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(order).encode() + b"\n")
        self._child.stdin.flush()
        size = int(self._child.stdout.readline())
        audio = np.frombuffer(self._child.stdout.read(size), "<i2").astype(np.float32) / np.float32(
            32768
        )
        resampled: Audio = soxr.resample(audio, 22_050, RATE).astype(np.float32)
        return resampled


def equalised(audio: Audio, profile: CloneProfile) -> Audio:
    """``audio`` with the profile's gains at its frequencies, the peak at most 0.9."""
    length = -(-len(audio) // 4096) * 4096
    spectrum = np.fft.rfft(audio, length)
    frequencies = np.fft.rfftfreq(length, 1 / RATE)
    gains = np.interp(frequencies, profile.eq_hz, profile.eq_db)
    shaped = np.fft.irfft(spectrum * 10 ** (gains / 20), length)[: len(audio)]
    peak = float(np.abs(shaped).max())
    return (shaped * min(1.0, 0.9 / peak)).astype(np.float32)
