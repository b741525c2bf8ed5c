"""The settings of the attacked gateway, and the bounds that it must keep."""

from __future__ import annotations

import os
from typing import Final

SETTINGS: Final = {
    "SVC_MAX_INFLIGHT": "100",
    "SVC_MAX_SPEECH_SESSIONS": "60",
    "SVC_MEMORY_BYTES": "671088640",
    "SVC_CLONES_PER_HOUR": "unlimited",
}
"""Bounds that programs on one machine can reach; the defaults are many times larger."""

MEMORY: Final = 700 * 1024 * 1024
"""Resident bytes of one worker (docs/explain/threat-model.md)."""

PAGES_MEMORY: Final = 400 * 1024 * 1024
"""Resident bytes of the page process."""

MOST_CAPTURES: Final = 30
"""Diagnostic captures of one organization's requests within a minute."""

SPOOLED: Final = 1024 * 1024
"""Bytes of bodies on disk, of one worker."""

THREADS: Final = 60 + min(32, (os.cpu_count() or 1) + 4)
"""Threads of one worker; the second part are asyncio's own on this machine."""

CONNECTIONS: Final = 40
"""Database connections of one worker."""
