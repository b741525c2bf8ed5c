"""Fixtures of the console, whose pages link to the reference."""

from tests.support.pages.console import console, insert, organization, person

__all__ = ["console", "insert", "organization", "person"]
