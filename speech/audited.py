"""Which rows of the speech surface the audit log watches.

Clones are their owners' own; what an operator does to one is recorded by the page that does it
(``speech.admin``).
"""

from __future__ import annotations

from accounts import audit
from speech.models import SpeechBackend, Voice


def watch() -> None:
    """Called once, when the app is ready."""
    audit.watch(Voice, ignored=frozenset({"created_at"}))
    audit.watch(SpeechBackend)
