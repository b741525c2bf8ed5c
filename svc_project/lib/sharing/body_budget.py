"""The bound on the bytes of request bodies that this process holds in memory."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from svc_project.lib.sharing.places import Places

held_bodies: Final = Places(
    "body_bytes", "bytes of request bodies", settings.SVC_MAX_BODY_BYTES_INFLIGHT
)
"""Each byte of a body counts from its arrival to the end of the request."""
