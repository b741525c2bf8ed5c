"""Fixtures of readers of usage."""

from tests.support.readers import _no_threads_left, organization, reader

__all__ = ["_no_threads_left", "organization", "reader"]
