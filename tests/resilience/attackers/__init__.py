"""Attackers: the docstring of each names the attacker, his requests and his aim.

Each runs until it is cancelled, with bounded rates: an attacker who merely uses up the machine's
processors would show nothing about the gateway.
"""

from __future__ import annotations

from typing import Final

from tests.resilience.attackers import floods, holds

ATTACKERS: Final = {
    each.__name__: each
    for each in (
        holds.no_key,
        floods.read_key,
        floods.spent_key,
        holds.speech_key,
        floods.console_user,
        floods.invented_keys,
        holds.slow_bodies,
        holds.slow_readers,
        holds.half_sockets,
        floods.huge_schemas,
        floods.heavy_texts,
        floods.captures,
    )
}
"""By name, in the order of docs/measurements/neighbours.md."""
NAMED: Final = tuple(ATTACKERS)
