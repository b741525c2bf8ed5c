"""The subprocess that holds espeak-ng. Run as a script with the standard library only.

espeak-ng is not thread-safe, and some texts crash it; so each copy lives in a process of its own,
takes one order at a time and may die without harm. It is free software under GPL-3.0 or later and
stays a program beside svc: only the messages below cross the pipe.

Arguments: the library, the directory that holds ``espeak-ng-data``. Messages, big-endian: an order
is a length (4 bytes) and JSON, an answer is a kind (1 byte), a length (4 bytes) and its bytes.
After start the worker says ``READY`` with the sample rate, or ``FAILED`` with a reason. An order is
answered by ``AUDIO`` any number of times, then by ``END``; or by ``FAILED``. It ends when its
standard input does.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

ANSWER = struct.Struct(">cI")
ORDER = struct.Struct(">I")
READY, AUDIO, END, FAILED = b"R", b"A", b"E", b"F"

CLONE_VARIANT = "clone"
"""Name of the variant that an order may bring along; its file exists while the order is spoken."""

# From speak_lib.h of espeak-ng 1.52.
_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_AT_CHARACTER = 1
_RATE, _VOLUME, _PITCH, _RANGE = 1, 2, 3, 4
_BUFFER_MILLISECONDS = 1000
_OK = 0

_MEMORY_BYTES = 1 << 30
_FILE_BYTES = 1 << 20


class _Espeak:
    """The library, initialised. ``rate`` is 0 when it did not find its files."""

    def __init__(self, library: str, directory: str, answers: BinaryIO) -> None:
        self._answers = answers
        self._variant = Path(directory, "espeak-ng-data", "voices", "!v", CLONE_VARIANT)
        self._library = ctypes.CDLL(library)
        self._library.espeak_Synth.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self.rate: int = self._library.espeak_Initialize(
            _SYNCHRONOUS, _BUFFER_MILLISECONDS, directory.encode(), _DO_NOT_EXIT
        )
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
            self._heard
        )
        self._kept_alive = callback
        self._library.espeak_SetSynthCallback(callback)

    def _heard(self, wave: int | None, count: int, _events: int | None) -> int:
        """Called by espeak-ng with each buffer. Returning 1 stops it."""
        try:
            if wave and count > 0:
                answer(self._answers, AUDIO, ctypes.string_at(wave, 2 * count))
        except BaseException:
            # ctypes would print the exception and go on speaking.
            return 1
        return 0

    def speak(self, order: dict[str, Any]) -> str | None:
        """Speak one order; the reason when it cannot be spoken."""
        voice = str(order["voice"])
        variant = order.get("variant")
        if variant is not None:
            self._variant.write_text(variant)
            voice += "+" + CLONE_VARIANT
        try:
            if self._library.espeak_SetVoiceByName(voice.encode()) != _OK:
                return "espeak-ng does not have the voice"
            # Each is left as the last order had it, also by a change of voice.
            for parameter, name in (
                (_RATE, "rate"),
                (_VOLUME, "volume"),
                (_PITCH, "pitch"),
                (_RANGE, "range"),
            ):
                self._library.espeak_SetParameter(parameter, int(order[name]), 0)
            text = str(order["text"]).encode() + b"\0"
            spoken = self._library.espeak_Synth(
                text, len(text), 0, _AT_CHARACTER, 0, _UTF8, None, None
            )
            return None if spoken == _OK else "espeak-ng did not speak"
        finally:
            if variant is not None:
                self._variant.unlink(missing_ok=True)


def answer(answers: BinaryIO, kind: bytes, payload: bytes = b"") -> None:
    """Write one answer and let it go at once."""
    answers.write(ANSWER.pack(kind, len(payload)) + payload)
    answers.flush()


def _confine() -> None:
    """Bound what a process that was corrupted by its input can do, and leave no core with text."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def main(library: str, directory: str) -> int:
    """Serve orders until standard input ends; the exit status of the process."""
    _confine()
    # The library may print: what it prints must not land among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    orders = sys.stdin.buffer
    try:
        espeak = _Espeak(library, directory, answers)
    except OSError:
        answer(answers, FAILED, b"the espeak-ng library cannot be loaded")
        return 1
    if espeak.rate <= 0:
        answer(answers, FAILED, b"espeak-ng does not find its data files")
        return 1
    answer(answers, READY, str(espeak.rate).encode())
    while len(head := orders.read(ORDER.size)) == ORDER.size:
        order = json.loads(orders.read(ORDER.unpack(head)[0]))
        problem = espeak.speak(order)
        answer(answers, END if problem is None else FAILED, (problem or "").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
