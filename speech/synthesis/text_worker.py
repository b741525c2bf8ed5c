"""The process that reads and prepares texts for a worker of the server. It needs nothing of Django.

A thread would hold the interpreter's lock at a low priority, and so keep the event loop from it.
``READY`` carries ``READY_PAYLOAD``; an order of ``text_orders`` is answered by its answer as JSON.
"""

from __future__ import annotations

import sys
from threading import Thread
from typing import Any

import msgspec

from core.sharing.processors import Niceness
from speech.engines.worker_frames import DATA, READY, answer, confine, own_answers, serve
from speech.synthesis.script import read_script
from speech.synthesis.text_orders import (
    READY_PAYLOAD,
    Answer,
    Fed,
    Feed,
    InvalidTags,
    Load,
    Loading,
    Order,
    Parse,
    Prepare,
    Prepared,
)
from speech.text import preparation
from speech.text.hindi import detect
from speech.text.language import Language
from speech.text.tags import TagError

_MEMORY_BYTES = 1 << 29


class _Texts:
    def __init__(self) -> None:
        self._lexicon: Thread | None = None
        """Loads the lexicon, for a second or more, while texts without Hindi are answered."""

    def answer(self, order: Order) -> Answer:
        """The answer to ``order``."""
        try:
            match order:
                case Load(hindi):
                    return self._load(hindi)
                case Parse(text):
                    return read_script(text)
                case Feed(reader, text):
                    sentences = reader.feed(text)
                    return Fed(reader, sentences)
                case Prepare(text, language, region, only_clean):
                    if language is Language.HINDI and self._lexicon is not None:
                        self._lexicon.join()
                    return Prepared(
                        preparation.prepared(text, language, region, only_clean=only_clean)
                    )
        except TagError as error:
            return InvalidTags.of(error)

    def _load(self, hindi: bool) -> Answer:
        if hindi and self._lexicon is None:
            self._lexicon = Thread(target=detect.prepare, daemon=True)
            self._lexicon.start()
        return Loading()


def main() -> int:
    """Serve orders until standard input ends; return the exit status of the process."""
    # With the server's priority: on a busy host a first text would wait for it in vain.
    preparation.load()
    confine(_MEMORY_BYTES, Niceness.LONG_WORK)
    answers = own_answers()
    texts = _Texts()

    def work(fields: dict[str, Any]) -> str | None:
        try:
            answered = msgspec.json.encode(texts.answer(msgspec.convert(fields, Order)))
        except Exception as error:
            # Only its class, because a message may quote the text.
            return type(error).__name__
        answer(answers, DATA, answered)
        return None

    answer(answers, READY, READY_PAYLOAD)
    serve(answers, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
