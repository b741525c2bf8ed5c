"""A download on the event loop: order, ends, failures, readers that disconnect or stall."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest
from pytest_django.fixtures import Settings

from core.errors import RateLimitExceeded, ServerOverloaded
from tests.support.until import until_async
from usage.api import csv_stream
from usage.api.csv_stream import CsvDownload, DownloadEnded, DownloadSlots


class Source:
    """Blocks from a fake database that records its calls."""

    def __init__(self, count: int, *, fails: bool = False) -> None:
        self.made = 0
        self.threads: set[int] = set()
        self.closed = threading.Event()
        self._count = count
        self._fails = fails

    def blocks(self) -> Generator[bytes, None, None]:
        try:
            for number in range(self._count):
                self.threads.add(threading.get_ident())
                self.made += 1
                yield str(number).encode()
            if self._fails:
                raise ConnectionError("the database is gone")
        finally:
            self.threads.add(threading.get_ident())
            self.closed.set()


async def closes(source: Source) -> bool:
    return await asyncio.to_thread(source.closed.wait, 60)


async def test_blocks_come_in_order_from_one_other_thread_which_is_closed() -> None:
    source = Source(100)

    blocks = [block async for block in CsvDownload(source.blocks(), DownloadSlots().take("acme"))]

    assert blocks == [str(number).encode() for number in range(100)]
    assert await closes(source)
    assert len(source.threads) == 1
    assert threading.get_ident() not in source.threads


async def test_a_failure_reaches_the_reader_after_the_blocks_before_it() -> None:
    source = Source(3, fails=True)
    download = CsvDownload(source.blocks(), DownloadSlots().take("acme"))
    blocks = [await anext(download) for _ in range(3)]

    with pytest.raises(ConnectionError):
        await anext(download)

    assert blocks == [b"0", b"1", b"2"]
    assert await closes(source)


async def test_the_source_waits_for_a_reader_that_does_not_read() -> None:
    source = Source(100)
    download = CsvDownload(source.blocks(), DownloadSlots().take("acme"))

    await anext(download)
    await anext(download)

    assert source.made <= 3
    download.close()
    assert await closes(source)


async def test_a_disconnect_closes_the_source_in_its_own_thread() -> None:
    source = Source(100)
    download = CsvDownload(source.blocks(), DownloadSlots().take("acme"))
    await anext(download)

    await asyncio.to_thread(download.close)
    download.close()

    assert await closes(source)
    assert len(source.threads) == 1


async def test_a_cancelled_reader_closes_the_source() -> None:
    waits = threading.Event()
    source = Source(1)

    def slow() -> Generator[bytes, None, None]:
        waits.wait(60)
        yield from source.blocks()

    download = CsvDownload(slow(), DownloadSlots().take("acme"))
    reading = asyncio.ensure_future(anext(download))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    waits.set()

    with pytest.raises(DownloadEnded):
        await anext(download)


@pytest.mark.parametrize(
    ("stall", "longest", "pace", "pause"),
    [
        pytest.param(0.01, 60.0, 1.0, None, id="a reader that stalls"),
        pytest.param(0.3, 60.0, 1000.0, 0.02, id="a reader of a few bytes each time"),
        pytest.param(60.0, 0.1, 1.0, 0.0, id="any reader after the longest time"),
    ],
)
async def test_a_download_is_cut_without_its_final_chunk(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    stall: float,
    longest: float,
    pace: float,
    pause: float | None,
) -> None:
    """``pause``: seconds between two blocks; None: the reader takes one and then waits for the end."""
    monkeypatch.setattr(csv_stream, "STALL_SECONDS", stall)
    settings.SVC_EXPORT_SECONDS = longest
    settings.SVC_EXPORT_BYTES_PER_SECOND = pace
    source = Source(10**9)
    download = CsvDownload(source.blocks(), DownloadSlots().take("acme"))
    await anext(download)
    if pause is None:
        assert await closes(source)

    async def read() -> None:
        async for _ in download:
            await asyncio.sleep(pause or 0)

    with pytest.raises(DownloadEnded):
        await read()

    assert await closes(source)


async def test_time_spent_in_the_database_does_not_count_against_the_reader(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """A clock that only the database moves: a second a block, with half a second for the reader."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(csv_stream, "STALL_SECONDS", 0.5)
    settings.SVC_EXPORT_BYTES_PER_SECOND = 1.0
    source, passed = Source(4), 0.0
    monkeypatch.setattr(loop, "time", lambda: passed)

    def slow() -> Generator[bytes, None, None]:
        nonlocal passed
        for block in source.blocks():
            passed += 1.0
            yield block

    assert len([block async for block in CsvDownload(slow(), DownloadSlots().take("acme"))]) == 4


@pytest.fixture
def slots(settings: Settings) -> DownloadSlots:
    settings.SVC_EXPORT_DOWNLOADS = 3
    settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION = 2
    return DownloadSlots()


async def test_a_download_that_never_begins_or_is_discarded_holds_no_place(
    slots: DownloadSlots,
) -> None:
    source = Source(1)
    for _ in range(5):
        CsvDownload(source.blocks(), slots.take("acme")).close()
        CsvDownload(source.blocks(), slots.take("acme"))

    assert source.threads == set()


async def test_a_place_is_held_until_the_database_connection_is_closed(
    slots: DownloadSlots,
) -> None:
    source = Source(100)
    downloads = [CsvDownload(source.blocks(), slots.take("acme")) for _ in range(2)]
    await anext(downloads[0])

    with pytest.raises(RateLimitExceeded) as refusal:
        slots.take("acme")
    assert refusal.value.headers["retry-after"] == "5"
    kept = slots.take("umbra")
    with pytest.raises(ServerOverloaded) as overload:
        slots.take("northwind")
    assert overload.value.headers["retry-after"] == "5"

    kept.release()
    kept.release()
    downloads[0].close()
    assert await closes(source)
    await until_async(lambda: slots.taken <= 1)
    slots.take("acme")
