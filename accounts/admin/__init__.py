"""The operators' pages for organizations, users, API keys and the audit log."""

from accounts.admin import audit, keys, organizations, users  # noqa: F401  # registers the pages
