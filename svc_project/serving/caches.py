"""What requests read from memory: catalog, voices and keys, and the watch over their changes."""

from __future__ import annotations

import asyncio
import logging

from django.db import Error

from accounts.changes import watcher
from accounts.keys.keyring import keyring
from inference.catalog.catalog import catalog
from speech.voices.voices import voices
from svc_project.lib.database import pool

log = logging.getLogger(__name__)


async def start() -> None:
    """Load everything, and follow its changes from now on."""
    try:
        await pool.run_once(_load_catalog)
    except Error as error:
        # Serving begins all the same: the watcher loads it when the database answers.
        log.error("the catalog cannot be read: %s", type(error).__name__)
    try:
        await pool.run_once(keyring.warm)
    except Error as error:
        # Nothing is lost: keys are looked up when they are used.
        log.warning("the keys in use cannot be read: %s", type(error).__name__)
    watcher.start()


async def close() -> None:
    """Write the uses of keys, and end the watch."""
    await asyncio.to_thread(watcher.stop)
    await asyncio.to_thread(keyring.close)


def _load_catalog() -> None:
    catalog.load()
    voices.load()
