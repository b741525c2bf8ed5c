"""The ledger in the admin: read, never written."""

from usage.admin import refusals, speech_rows, usage_rows  # noqa: F401  # registers the pages
