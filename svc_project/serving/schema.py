"""Whether the database has the schema of this release, looked at until it has."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from django.db import Error

from core.database.failures import place, words_of
from core.database.schema import compare
from core.database.threads import run_once

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 2.0


class Schema:
    """``is_older`` while a migration of this release has not run; False while that is not known.

    A schema of this release stays one: migrations are not taken back under a running gateway.
    """

    def __init__(self) -> None:
        self.is_older = False
        self._is_known = False
        self._is_first = True

    async def check(self) -> None:
        """Look once; the first look says what is wrong with a database that cannot be used."""
        is_first, self._is_first = self._is_first, False
        try:
            missing = (await run_once(compare)).missing
        except Error as error:
            if is_first:
                log.error("%s", words_of(error))
            return
        if missing and not self.is_older:
            log.error(
                "%s has not the schema of this release: %d migration(s) are missing, the first %s. "
                "Run `svc migrate`; until then this process is not ready",
                place(),
                len(missing),
                missing[0],
            )
        self.is_older = bool(missing)
        self._is_known = not missing

    async def watch(self) -> None:
        """Look until the schema is that of this release."""
        while not self._is_known:
            await asyncio.sleep(_LOOK_SECONDS)
            await self.check()


schema = Schema()
