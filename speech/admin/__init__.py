"""The operators' pages of voices, speech backends, clones and their copies."""

from speech.admin import clones, voices  # noqa: F401  # registers the pages
