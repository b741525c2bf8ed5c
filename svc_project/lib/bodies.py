"""How many bytes of request bodies this process holds in memory at once, and the bound on it."""

from __future__ import annotations

from django.conf import settings

from svc_project.lib.errors import ServerOverloaded


class HeldBodies:
    """Bodies count from when they arrive until their request has ended."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0

    def check(self, size: int) -> None:
        """Raise ``ServerOverloaded`` when ``size`` more bytes are too many; takes nothing."""
        if self.held + size > self.most:
            raise ServerOverloaded

    def take(self, size: int) -> None:
        """Hold ``size`` more bytes. Raises ``ServerOverloaded``; then nothing is taken."""
        if self.held + size > self.most:
            raise ServerOverloaded
        self.held += size

    def give_back(self, size: int) -> None:
        """Let go of what was taken."""
        self.held -= size


held_bodies = HeldBodies(settings.SVC_MAX_BODY_BYTES_INFLIGHT)
