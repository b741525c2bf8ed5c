"""Request ids are UUIDs of version 7, all different, in forked processes too."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid

from core.ids import uuid7_hex


def test_ids_are_version_7_and_begin_with_the_time() -> None:
    before = time.time_ns() // 1_000_000
    made = [uuid.UUID(uuid7_hex()) for _ in range(1000)]
    after = time.time_ns() // 1_000_000

    assert {(each.version, each.variant) for each in made} == {(7, uuid.RFC_4122)}
    assert all(before <= each.int >> 80 <= after for each in made)
    assert len({each.int & (2**62 - 1) for each in made}) == 1000


def test_every_random_bit_is_used() -> None:
    made = [uuid.UUID(uuid7_hex()).int for _ in range(1000)]
    fixed = (0xF << 76) | (0b11 << 62)
    for bit in range(80):
        if not fixed >> bit & 1:
            assert {value >> bit & 1 for value in made} == {0, 1}, bit


FORK = """
import os
from core.ids import uuid7_hex

uuid7_hex()
child = os.fork()
made = uuid7_hex()[-15:]
os.write(1, made.encode() + b"\\n")
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_process_makes_other_ids() -> None:
    """In a process of its own, because this one has threads."""
    done = subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, text=True)
    one, other = done.stdout.split()
    assert one != other
