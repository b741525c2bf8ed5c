"""Attackers, one module each: its docstring names the attacker, his requests and his aim.

Each has ``attack(target, tally)``, which runs until it is cancelled, and bounded rates: an attacker
who merely uses up the machine's processors would show nothing about the gateway.
"""

from __future__ import annotations

from typing import Final

NAMED: Final = (
    "no_key",
    "read_key",
    "spent_key",
    "speech_key",
    "console_user",
    "invented_keys",
    "slow_bodies",
    "slow_readers",
    "half_sockets",
    "huge_schemas",
    "heavy_texts",
    "captures",
)
"""The modules whose measurements docs/measurements/neighbours.md shows."""

FURTHER: Final = (
    "pipelines",
    "long_heads",
    "pings",
    "deep_pages",
    "logins",
    "key_maker",
    "clone_maker",
    "tiny_windows",
)
"""Further attackers, run by hand."""
