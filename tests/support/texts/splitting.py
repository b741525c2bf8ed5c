"""Splits whole texts as the service does while they arrive."""

from __future__ import annotations

from speech.text.sentences import SentenceSplitter


def split(text: str) -> list[str]:
    """Split a whole text into sentences; joined they are ``text``."""
    splitter = SentenceSplitter()
    return [*splitter.feed(text), *splitter.flush()]
