"""The problems that ``/readyz`` reports by name, and what they tell an operator."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

PROBLEMS_STATS: Final = "problems"
"""The name under which each worker shares its problems (``worker_stats``)."""


class Problem(StrEnum):
    DRAINING = "draining"
    CATALOG_NOT_LOADED = "catalog_not_loaded"
    SCHEMA_OLDER_THAN_CODE = "schema_older_than_code"
    NO_DURABLE_PLACE_FOR_USAGE_ROWS = "no_durable_place_for_usage_rows"
    DATABASE_AWAY = "database_away"
    JOURNAL_TAKES_NOTHING = "journal_takes_nothing"
    ROWS_WAIT_IN_MEMORY = "rows_wait_in_memory"
    ROWS_REFUSED_BY_THE_DATABASE = "rows_refused_by_the_database"
    JOURNAL_FILES_UNREADABLE = "journal_files_unreadable"
    CLOCKS_APART = "clocks_apart"


WORDS: Final[Mapping[Problem, str]] = {
    Problem.DRAINING: "The worker is draining and takes no new requests.",
    Problem.CATALOG_NOT_LOADED: "The catalog could not be read yet; no chat is served.",
    Problem.SCHEMA_OLDER_THAN_CODE: "The database's schema is older than this release: run `svc migrate`.",
    Problem.NO_DURABLE_PLACE_FOR_USAGE_ROWS: "Neither the journal nor the database takes usage rows; "
    "requests are refused with 503.",
    Problem.DATABASE_AWAY: "The database does not answer; usage rows go to the journal.",
    Problem.JOURNAL_TAKES_NOTHING: "The journal takes no records: look at its disk. Requests are admitted in the database meanwhile.",
    Problem.ROWS_WAIT_IN_MEMORY: "Usage rows wait in memory for the database or the journal.",
    Problem.ROWS_REFUSED_BY_THE_DATABASE: "The database refused usage rows; they are kept, and written "
    "when it takes them (docs/explain/metering.md).",
    Problem.JOURNAL_FILES_UNREADABLE: "Files of the journal cannot be read; they are kept.",
    Problem.CLOCKS_APART: "The clocks of this host and of the database differ: limits, days and prices go by "
    "the host's, the times of usage rows by the database's. Let both follow a time server.",
}
