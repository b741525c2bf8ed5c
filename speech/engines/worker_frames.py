"""The frames on the pipe between the server and a worker process. Standard library only.

All big-endian: an order is a length (4 bytes) and JSON, an answer is a kind (1 byte), a length
(4 bytes) and its bytes. After its start a worker sends ``READY`` with the payload that its program
promises, or ``FAILED`` with a reason. An order is answered by any number of ``DATA``, then ``END``;
or by ``FAILED``. A worker exits at the end of its standard input. An order with ``marks`` is answered
by these, as a length and JSON, ahead of the sound.
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

PROCESSORS = "SVC_PROCESSORS"
"""The environment variable with the processors that a worker may use; without: those it inherits."""
NICENESS = 5

_FILE_BYTES = 1 << 20


def answer(answers: BinaryIO, kind: bytes, payload: bytes = b"") -> None:
    """Write one answer and flush it."""
    answers.write(ANSWER.pack(kind, len(payload)) + payload)
    answers.flush()


def marked(marks: object, sound: bytes) -> bytes:
    """``sound`` with ``marks`` ahead of it."""
    content = json.dumps(marks).encode()
    return ORDER.pack(len(content)) + content + sound


def split_marks(answered: bytes) -> tuple[bytes, bytes]:
    """The JSON of the marks and the sound of an answer that is ``marked``."""
    end = ORDER.size + ORDER.unpack_from(answered)[0]
    return answered[ORDER.size : end], answered[end:]


def confine(memory_bytes: int, niceness: int = NICENESS) -> None:
    """Limit the resources of a process that its input may corrupt, and write no core dump.

    Its priority is lower than that of the server, whose event loop answers everybody, and it may use
    every processor, while a worker of the server keeps to a share.
    """
    os.nice(niceness)
    if usable := os.environ.get(PROCESSORS):
        with contextlib.suppress(OSError):  # the operator has taken all of them away
            os.sched_setaffinity(0, set(map(int, usable.split(","))))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def own_answers() -> BinaryIO:
    """Take standard output for answers; what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def serve(answers: BinaryIO, work: Callable[[dict[str, Any]], str | None]) -> None:
    """Answer orders until input ends; ``work`` returns the reason of a failure, or None."""
    orders = sys.stdin.buffer
    while len(head := orders.read(ORDER.size)) == ORDER.size:
        problem = work(json.loads(orders.read(ORDER.unpack(head)[0])))
        answer(answers, END if problem is None else FAILED, (problem or "").encode())
