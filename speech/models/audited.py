"""Registers the models of the speech surface that are audited.

Clones belong to their owners; the page on which an operator deletes one records that
(``speech.admin.clones``).
"""

from __future__ import annotations

from accounts.audit import trail
from speech.models import SpeechBackend, Voice, VoiceServer, WordPronunciation


def watch() -> None:
    """Register the models; called once, when the app is ready."""
    trail.watch(Voice, ignored=frozenset({"created_at"}))
    trail.watch(VoiceServer)
    trail.watch(SpeechBackend)
    trail.watch(WordPronunciation, ignored=frozenset({"created_at", "word_key"}))
