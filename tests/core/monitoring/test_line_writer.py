"""Lines of the request log: whole in a shared pipe, and never waited for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from core.monitoring.request_log import PIPE_BUF, LineWriter
from tests.support.until import until


@dataclass
class Pipe:
    """Both ends of a pipe, as a log collector and the workers that share it hold them."""

    reading: int
    writing: int

    def read_all(self) -> bytes:
        """Read until every writer has closed its end."""
        os.close(self.writing)
        return until_closed(self.reading)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    yield Pipe(reading, writing)
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


def line(writer: int, number: int, size: int = 300) -> bytes:
    return f"{writer} {number} ".encode().ljust(size - 1, b"x") + b"\n"


def test_lines_of_workers_that_share_a_pipe_do_not_mix(pipe: Pipe) -> None:
    writers = [LineWriter(pipe.writing, 100_000) for _ in range(3)]
    read: list[bytes] = []

    def work(number: int) -> None:
        for each in range(2000):
            writers[number].write(line(number, each))
        writers[number].close()

    reader = threading.Thread(target=lambda: read.append(until_closed(pipe.reading)))
    reader.start()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    os.close(pipe.writing)
    reader.join()

    lines = read[0].splitlines(keepends=True)
    for number in range(3):
        own = [each for each in lines if each.startswith(f"{number} ".encode())]
        assert own == [line(number, each) for each in range(2000)]
    assert sum(writer.dropped for writer in writers) == 0


def until_closed(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65_536):
        parts.append(part)
    return b"".join(parts)


def test_a_full_pipe_drops_lines_and_counts_them(pipe: Pipe) -> None:
    writer = LineWriter(pipe.writing, 50)
    written = 0
    while not writer.dropped:  # it would never end if a write waited for the reader
        writer.write(line(0, written))
        written += 1
    dropped = writer.dropped

    lines = os.read(pipe.reading, 1 << 20).splitlines()
    threading.Thread(target=writer.close).start()
    lines += pipe_rest(pipe, written - dropped - len(lines))

    assert len(lines) == written - dropped
    assert all(len(each) == 299 for each in lines)


def pipe_rest(pipe: Pipe, lines: int) -> list[bytes]:
    found = b""
    while found.count(b"\n") < lines:
        found += os.read(pipe.reading, 65_536)
    return found.splitlines()


def test_a_pipe_that_another_process_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    writer = LineWriter(pipe.writing)
    for number in range(1000):
        writer.write(line(0, number))
    closing = threading.Thread(target=writer.close)
    closing.start()

    lines = pipe_rest(pipe, 1000)
    closing.join()

    assert lines == [line(0, number)[:-1] for number in range(1000)]
    assert writer.dropped == 0


def test_a_reader_that_ended_costs_lines_only(pipe: Pipe) -> None:
    os.close(pipe.reading)
    writer = LineWriter(pipe.writing)
    writer.write(line(0, 1))

    assert until(lambda: writer.dropped) == 1
    writer.close()


def test_each_write_fits_the_size_that_a_pipe_takes_in_one_piece(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = os.write

    def measured(descriptor: int, content: bytes) -> int:
        if descriptor == pipe.writing:
            sizes.append(len(content))
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", measured)
    writer = LineWriter(pipe.writing)
    for number in range(100):
        writer.write(line(0, number))
    writer.close()

    assert max(sizes) <= PIPE_BUF
    assert len(sizes) < 100, "several lines fit one write"
    assert len(pipe.read_all()) == 100 * 300
