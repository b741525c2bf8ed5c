"""Fixtures of the console."""

from tests.support.pages.console import console, insert, key, organization, person, stranger

__all__ = ["console", "insert", "key", "organization", "person", "stranger"]
