"""The subprocess that runs espeak-ng. It needs numpy and soxr, and nothing of svc's settings.

espeak-ng is not thread-safe, and some texts crash it; so each copy runs in its own process, takes
one order at a time and may die without harm. It is free software under GPL-3.0 or later and stays a
separate program: only the messages below cross the pipe.

Arguments: the library, the directory that holds ``espeak-ng-data``, the niceness. ``READY`` carries
the sample rate; an order is answered by its sound (``speech.audio.pcm``), or by the phonemes of its
texts as a JSON array. The marks of an order are the text that was spoken, and the offset of each word that
espeak-ng reported with its time in seconds.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import soxr

from speech.audio.equaliser import equalised
from speech.audio.pcm import FADE_SECONDS, SAMPLE_RATE, faded, pcm_bytes, samples
from speech.engines.sanitize import plain_words
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
from speech.text.pronunciations import STAND_IN


def shaped(raw: bytes, rate: int, hertz: Sequence[float], decibels: Sequence[float]) -> bytes:
    """Return ``raw``, of ``rate`` samples per second, at ``SAMPLE_RATE``, with silent edges.

    This runs in the worker, so that the event loop only passes the sound on.

    An equaliser with gains of ``decibels`` at ``hertz`` comes first, unless they are empty. Raises
    ``ValueError`` for half a sample.
    """
    fade = round(FADE_SECONDS * rate)
    signal = faded(samples(raw), start=fade, end=fade)
    if len(hertz):
        signal = equalised(signal, hertz, decibels, rate)
    return pcm_bytes(soxr.resample(signal, rate, SAMPLE_RATE))


CLONE_VARIANT = "clone"
"""Name of the variant that an order may contain; its file exists while the order is spoken."""

# From speak_lib.h of espeak-ng 1.52.
_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_PHONEMES = 0x100
"""Read ``[[...]]`` in a text as names of phonemes."""
_AT_CHARACTER = 1
_RATE, _VOLUME, _PITCH, _RANGE = 1, 2, 3, 4
_BUFFER_MILLISECONDS = 1000
_WORD_EVENT, _LAST_EVENT = 1, 0
_NORMAL_RATE, _SONIC_RATE = 175, 450
"""From ``_SONIC_RATE`` words per minute on, espeak-ng speaks at ``_NORMAL_RATE`` and shortens the sound
with sonic; its events have the place in the buffer before."""
_OK = 0
_TIE = "^"
"""Joins the letters of one phoneme, such as a diphthong."""
_IPA = 0x02 | 0x80 | ord(_TIE) << 8

_MOST_STRETCHED = 1 << 17
_DATA_BYTES = 1 << 19

_MEMORY_BYTES = 1 << 30


_SOUNDS_OPEN = re.compile(r"\[(?=\[)")
_CLAUSE_END = re.compile("[,;!?\u0964] ")
_LONGEST_CLAUSE = 700
"""Bytes; espeak-ng cuts a clause that is longer than 725, also within phonemes."""


class WithSounds:
    """An ``ordered`` text, as espeak-ng gets it: with ``[[...]]`` for each stand-in in ``sounds``.

    In a clause that grows too long the word is read as it is written. Of the text's own ``[[`` the
    brackets are kept apart. ``cuts``: for each stand-in its beginning in
    ``ordered``, where that is in ``text``, and how much longer ``text`` is behind it than ``ordered``.
    """

    def __init__(self, ordered: str, sounds: Sequence[Sequence[str]]) -> None:
        self.cuts: list[tuple[int, int, int]] = []
        self._longer = 0
        known = {stand_in: (word, phonemes) for stand_in, word, phonemes in sounds}
        if not any(stand_in in ordered for stand_in in known):
            self.ordered = self.text = ordered
            return
        self.ordered = _SOUNDS_OPEN.sub("[ ", ordered)
        pieces: list[str] = []
        longer = after = clause = 0
        for found in STAND_IN.finditer(self.ordered):
            if found[0] not in known:
                continue
            before = self.ordered[after : found.start()]
            ends = _CLAUSE_END.split(before)
            clause = len(ends[-1].encode()) + (clause if len(ends) == 1 else 0)
            word, phonemes = known[found[0]]
            spoken = f"[[{phonemes}]]"
            if clause + len(spoken) > _LONGEST_CLAUSE:
                spoken = plain_words(word)
            clause += len(spoken.encode())
            pieces += [before, spoken]
            self.cuts.append((found.start(), found.start() + longer, longer))
            longer, after = longer + len(spoken) - len(found[0]), found.end()
        self._longer = longer
        self.text = "".join([*pieces, self.ordered[after:]])

    def offset(self, at: int) -> int:
        """Where in ``ordered`` the word is that is at ``at`` in ``text``."""
        cut = bisect_right([place for _, place, _ in self.cuts], at) - 1
        if cut < 0:
            return at
        begin = self.cuts[cut][0]
        longer = self.cuts[cut + 1][2] if cut + 1 < len(self.cuts) else self._longer
        return max(begin, at - longer)


class _Event(ctypes.Structure):
    """``espeak_EVENT`` of speak_lib.h; ``position`` counts code points from 1."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("milliseconds", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


class _Espeak:
    """The initialised library. ``rate`` is 0 when it did not find its files."""

    def __init__(self, library: str, directory: str, answers: BinaryIO) -> None:
        self._answers = answers
        self._spoken = bytearray()
        """The samples of the order that is spoken."""
        self._words: list[tuple[int, float]] = []
        """The offset of each word of it, and the sample at which the word begins."""
        self._hurry = 1.0
        """The factor by which espeak-ng shortens its sound after the events."""
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
        self._library.sonicCreateStream.restype = ctypes.c_void_p
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self.rate: int = self._library.espeak_Initialize(
            _SYNCHRONOUS, _BUFFER_MILLISECONDS, directory.encode(), _DO_NOT_EXIT
        )
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
            self._on_audio
        )
        self._kept_alive = callback
        self._library.espeak_SetSynthCallback(callback)

    def _on_audio(self, wave: int | None, count: int, events: int | None) -> int:
        """Keep one buffer of espeak-ng, which calls this. Return 1 to stop it."""
        try:
            if events:
                self._keep_words(ctypes.cast(events, ctypes.POINTER(_Event)))
            if wave and count > 0:
                self._spoken += ctypes.string_at(wave, 2 * count)
        except BaseException:
            # ctypes would print the exception, and espeak-ng would go on speaking.
            return 1
        return 0

    def _keep_words(self, events: Any) -> None:
        before = len(self._spoken) // 2
        at = 0
        while (event := events[at]).type != _LAST_EVENT:
            if event.type == _WORD_EVENT:
                sample = before + (event.sample - before) / self._hurry
                self._words.append((event.position - 1, sample))
            at += 1

    def work(self, order: dict[str, Any]) -> str | None:
        """Run one order of either kind; return the reason of a failure, or None."""
        return self.answer_phonemes(order) if "phonemes_of" in order else self.speak(order)

    def answer_phonemes(self, order: dict[str, Any]) -> str | None:
        """Answer the phonemes of texts in IPA; return the reason of a failure, or None."""
        if self._library.espeak_SetVoiceByName(str(order["voice"]).encode()) != _OK:
            return "espeak-ng does not have the voice"
        phonemes = [self._phonemes(str(text)) for text in order["phonemes_of"]]
        answer(self._answers, DATA, json.dumps(phonemes).encode())
        return None

    def _phonemes(self, text: str) -> str:
        kept = ctypes.create_string_buffer(text.encode() + b"\0")
        rest = ctypes.c_void_p(ctypes.addressof(kept))
        clauses = []
        while rest.value:  # espeak-ng takes a clause at a time and moves the pointer on
            phonemes = self._library.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            clauses.append((phonemes or b"").decode(errors="replace"))
        return " ".join(clauses)

    def speak(self, order: dict[str, Any]) -> str | None:
        """Speak one order; return the reason of a failure, or None."""
        voice = str(order["voice"])
        variant = order.get("variant")
        if variant is not None:
            self._variant.write_text(variant)
            voice += "+" + CLONE_VARIANT
        try:
            if self._library.espeak_SetVoiceByName(voice.encode()) != _OK:
                return "espeak-ng does not have the voice"
            # All are set, because even a change of voice keeps those of the last order.
            for parameter, name in (
                (_RATE, "rate"),
                (_VOLUME, "volume"),
                (_PITCH, "pitch"),
                (_RANGE, "range"),
            ):
                self._library.espeak_SetParameter(parameter, int(order[name]), 0)
            self._spoken.clear()
            self._words.clear()
            rate = int(order["rate"])
            self._hurry = rate / _NORMAL_RATE if rate >= _SONIC_RATE else 1.0
            text = WithSounds(str(order["text"]), order.get("sounds") or ())
            if self._synthesise(text) != _OK:
                return "espeak-ng did not speak"
            stretch = float(order["stretch"])
            raw = self._stretched(stretch) if stretch > 1 else bytes(self._spoken)
            sound = shaped(raw, self.rate, order["eq_hz"], order["eq_db"])
            if order.get("marks"):
                sound = marked(self._marks(text, stretch), sound)
            for at in range(0, len(sound), _DATA_BYTES):
                answer(self._answers, DATA, sound[at : at + _DATA_BYTES])
            return None
        finally:
            if variant is not None:
                self._variant.unlink(missing_ok=True)

    def _synthesise(self, text: WithSounds) -> int:
        """Let espeak-ng speak ``text``; return its status."""
        content = text.text.encode() + b"\0"
        flags = _UTF8 | (_PHONEMES if text.cuts else 0)
        status: int = self._library.espeak_Synth(
            content, len(content), 0, _AT_CHARACTER, 0, flags, None, None
        )
        return status

    def _marks(self, text: WithSounds, stretch: float) -> tuple[str, list[tuple[int, float]]]:
        seconds = max(stretch, 1.0) / self.rate
        words = [(text.offset(at), sample * seconds) for at, sample in self._words]
        return text.ordered, words

    def _stretched(self, stretch: float) -> bytes:
        """What was spoken, lengthened by sonic, which espeak-ng includes for its fast rates."""
        sound = bytes(self._spoken)
        longer = bytearray()
        library = self._library
        stream = ctypes.c_void_p(library.sonicCreateStream(self.rate, 1))
        if not stream:
            raise MemoryError
        try:
            library.sonicSetSpeed(stream, ctypes.c_float(1 / stretch))
            library.sonicWriteShortToStream(stream, sound, len(sound) // 2)
            library.sonicFlushStream(stream)
            piece = ctypes.create_string_buffer(2 * _MOST_STRETCHED)
            while (count := library.sonicReadShortFromStream(stream, piece, _MOST_STRETCHED)) > 0:
                longer += piece.raw[: 2 * count]
        finally:
            library.sonicDestroyStream(stream)
        return bytes(longer)


def main(library: str, directory: str, niceness: str) -> int:
    """Serve orders until standard input ends; return the exit status of the process."""
    confine(_MEMORY_BYTES, int(niceness))
    answers = own_answers()
    try:
        espeak = _Espeak(library, directory, answers)
    except OSError:
        answer(answers, FAILED, b"the espeak-ng library cannot be loaded")
        return 1
    if espeak.rate <= 0:
        answer(answers, FAILED, b"espeak-ng does not find its data files")
        return 1
    answer(answers, READY, str(SAMPLE_RATE).encode())
    serve(answers, espeak.work)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
