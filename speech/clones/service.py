"""The making of clones in this process, put together from the settings."""

from __future__ import annotations

from functools import cache

from accounts.principal import Principal
from speech.clones.creation import CloneCreation
from speech.engines.espeak import Espeak
from speech.voices import voices


@cache
def creation() -> CloneCreation:
    """The one of this process; belongs to the event loop that first uses it."""
    return CloneCreation(voices, Espeak(workers=2), _unlimited)


async def _unlimited(principal: Principal) -> None:
    pass
