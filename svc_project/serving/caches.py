"""What requests read from memory: catalog, voices and keys, and the watch over their changes."""

from __future__ import annotations

import asyncio
import logging

from django.db import Error

from accounts.changes import key_watcher, watcher
from accounts.keys.keyring import keyring
from core.database.threads import run_once
from inference.catalog.catalog import catalog
from speech.voices.voices import voices

log = logging.getLogger(__name__)

WATCHED = (catalog, voices, keyring)
"""What subscribed to the watchers."""


async def start() -> None:
    """Load everything, and follow its changes from now on."""
    try:
        await run_once(_poll)
    except Error as error:
        # Serving begins all the same: the watchers load them when the database answers.
        log.error("catalog and keys cannot be read: %s", type(error).__name__)
    key_watcher.start()
    watcher.start()


async def close() -> None:
    """Write the uses of keys, and end the watch."""
    await asyncio.to_thread(key_watcher.stop)
    await asyncio.to_thread(watcher.stop)
    await asyncio.to_thread(keyring.close)


def _poll() -> None:
    key_watcher.poll()
    watcher.poll()
