"""A subprocess with espeak-ng that spells texts in phonemes, so that a crash ends only itself.

A request is a line of JSON, ``[voice, text]``; the answer is a line of IPA.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import espeakng_loader

_UTF8, _IPA, _RETRIEVAL = 1, 0x02, 0x01


class Phonemes:
    """The client of the subprocess. Use it as a context manager."""

    def __enter__(self) -> Phonemes:
        self._child = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate(timeout=60)

    def of(self, text: str, voice: str) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps([voice, text]) + "\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()


def main() -> None:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    rate = library.espeak_Initialize(_RETRIEVAL, 0, espeakng_loader.get_data_path().encode(), 0)
    assert rate == 22_050, rate
    for line in sys.stdin:
        voice, text = json.loads(line)
        assert library.espeak_SetVoiceByName(voice.encode()) == 0, voice
        rest = ctypes.c_char_p(text.encode())
        phonemes: list[str] = []
        while rest:
            piece = library.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            phonemes.append(piece.decode())
        print(" ".join(phonemes), flush=True)


if __name__ == "__main__":
    main()
