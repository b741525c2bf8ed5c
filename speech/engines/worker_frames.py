"""What crosses the pipe between the server and a worker process. Standard library only.

Messages, big-endian: an order is a length (4 bytes) and JSON, an answer is a kind (1 byte), a
length (4 bytes) and its bytes. After start a worker says ``READY`` and what its program promises,
or ``FAILED`` with a reason. An order is answered by ``DATA`` any number of times, then by ``END``;
or by ``FAILED``. A worker ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

ANSWER = struct.Struct(">cI")
ORDER = struct.Struct(">I")
READY, DATA, END, FAILED = b"R", b"A", b"E", b"F"

_FILE_BYTES = 1 << 20


def answer(answers: BinaryIO, kind: bytes, payload: bytes = b"") -> None:
    """Write one answer and let it go at once."""
    answers.write(ANSWER.pack(kind, len(payload)) + payload)
    answers.flush()


def confine(memory_bytes: int) -> None:
    """Bound what a process that was corrupted by its input can do, and leave no core with text."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def own_answers() -> BinaryIO:
    """Standard output for answers alone: what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def serve(answers: BinaryIO, work: Callable[[dict[str, Any]], str | None]) -> None:
    """Give each order to ``work``, which returns why it cannot be done or None, until input ends."""
    orders = sys.stdin.buffer
    while len(head := orders.read(ORDER.size)) == ORDER.size:
        problem = work(json.loads(orders.read(ORDER.unpack(head)[0])))
        answer(answers, END if problem is None else FAILED, (problem or "").encode())
