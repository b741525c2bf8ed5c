"""How many bytes of request bodies this process holds in memory at once, and the bound on it."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from svc_project.lib.places import Places

held_bodies: Final = Places(
    "body_bytes", "bytes of request bodies", settings.SVC_MAX_BODY_BYTES_INFLIGHT
)
"""Bodies count, byte by byte, from when they arrive until their request has ended."""
