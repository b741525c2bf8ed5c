"""The settings of the gateway that is attacked, and what it must keep to."""

from __future__ import annotations

import os
from typing import Final

SETTINGS: Final = {
    "SVC_MAX_INFLIGHT": "100",
    "SVC_MAX_ARRIVING": "100",
    "SVC_MAX_LINGERING": "40",
    "SVC_MAX_UNSTARTED_SESSIONS": "60",
    "SVC_MAX_SPEECH_SESSIONS": "60",
    "SVC_CLONES_PER_HOUR": "unlimited",
}
"""Bounds that programs on one machine can reach; the defaults are many times larger."""

MEMORY: Final = 700 * 1024 * 1024
"""Of one worker, resident (docs/explain/threat-model.md)."""

MOST_CAPTURES: Final = 30
"""Diagnostic captures that are kept of what one organization sends within a minute."""

SPOOLED: Final = 16 * 1024 * 1024
"""Bytes of bodies on disk, of one worker."""

THREADS: Final = 60 + min(32, (os.cpu_count() or 1) + 4)
"""Of one worker. The second part is what asyncio keeps for itself on this machine."""

CONNECTIONS: Final = 40
"""To the database, of one worker."""
