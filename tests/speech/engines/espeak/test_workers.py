"""The workers of the embedded engine: their priority, crashes, texts and files."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.sharing.processors import Niceness
from speech.audio.pcm import duration
from speech.engines import EngineError, Utterance, worker_pool
from speech.engines.espeak.engine import Espeak
from speech.engines.espeak.pool import EspeakPool, EspeakWorker, Order
from speech.engines.worker_pool import WorkerDied
from tests.support.processes import runs
from tests.support.servers.engine_processes import worker_pids
from tests.support.until import until_async

SENTENCE = Utterance("The old bridge was closed for the winter.", "en", "en-us")
DEADLY = "U.S." * 300


async def spoken(engine: Espeak, utterance: Utterance = SENTENCE) -> bytes:
    return b"".join([piece async for piece in engine.speak(utterance)])


def variables_of(pid: int | None) -> set[str]:
    """The names in the environment that a process was started with."""
    environment = Path(f"/proc/{pid}/environ").read_text()
    return {each.partition("=")[0] for each in environment.split("\0") if each}


@pytest.fixture
async def engine() -> AsyncIterator[Espeak]:
    engine = Espeak(workers=1)
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[EspeakWorker]:
    worker = EspeakWorker(tmp_path / "w")
    yield worker
    await worker.stop()


async def test_a_text_that_crashes_a_worker_crashes_nothing_else(worker: EspeakWorker) -> None:
    with pytest.raises(WorkerDied):
        await worker.run(Order("en-us", DEADLY))
    await worker.kill()

    assert duration(await worker.run(Order("en-us", "Hello."))) > 0.25


async def test_a_worker_is_started_without_settings_and_keys(
    worker: EspeakWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_KEY_PEPPERS", "a-pepper")
    monkeypatch.setenv("DATABASE_URL", "postgres://a-password@x/y")
    await worker.start()

    assert variables_of(worker.pid) <= {"LD_LIBRARY_PATH", "OPENBLAS_NUM_THREADS"}


async def test_a_text_that_crashes_a_worker_is_retried_as_plain_words() -> None:
    pool = EspeakPool(size=1, most_waiting=1, wait_seconds=60, order_seconds=60)
    try:
        sound = await pool.run(Order("en-us", DEADLY[:480]))
    finally:
        await pool.close()

    assert duration(sound) > 10


async def test_a_worker_that_died_idle_is_replaced(engine: Espeak) -> None:
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGKILL)
    await until_async(lambda: worker_pids() == [])
    before = restarts_of("espeak")

    assert duration(await spoken(engine)) > 1.0
    assert restarts_of("espeak") == before + 1


def restarts_of(engine: str) -> float:
    """How often processes of ``engine`` were started again, as ``/metrics`` has it."""
    samples = worker_pool.restarts.family().samples
    return sum(each.value for each in samples if each.labels == {"engine": engine})


async def test_a_short_text_has_a_worker_with_the_priority_of_the_server() -> None:
    engine = Espeak(workers=2)
    await engine.start()
    try:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        behind = {pid: os.getpriority(os.PRIO_PROCESS, pid) - own for pid in worker_pids()}
        short, long = sorted(behind, key=lambda pid: behind[pid])
        os.kill(long, signal.SIGSTOP)
        first = asyncio.create_task(spoken(engine, replace(SENTENCE, is_long=True)))
        second = await spoken(engine)

        assert (behind[short], behind[long]) == (0, Niceness.LONG_WORK)
        assert duration(second) > 1.0
        assert not first.done()
        os.kill(long, signal.SIGCONT)
        assert duration(await first) > 1.0
    finally:
        await engine.close()


async def test_an_organization_leaves_a_worker_to_one_that_spoke_lately() -> None:
    pool = EspeakPool(size=2, most_waiting=8, wait_seconds=60, order_seconds=60)
    heard: list[str] = []
    long_text = "All of it. " * 200

    async def speak(organization_id: str, text: str) -> None:
        is_long = text is long_text
        await pool.run(Order("en-us", text), organization_id, is_long=is_long)
        heard.append(organization_id)

    try:
        await speak("brief", "Hello.")
        long = [asyncio.create_task(speak("wordy", long_text)) for _ in range(4)]
        await asyncio.sleep(0)  # both have asked for a worker
        await speak("brief", "Hello.")
        await asyncio.gather(*long)
    finally:
        await pool.close()

    assert heard[:2] == ["brief", "brief"], "it waited for a long order"


async def test_a_cancelled_caller_does_not_delay_the_next_one(engine: Espeak) -> None:
    (pid,) = worker_pids()
    long = Utterance("one and two and three and four and " * 60, "en", "en-us")
    for _ in range(5):
        leaver = asyncio.create_task(spoken(engine, long))
        await until_async(lambda: bool(engine._pool._running))
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
    pieces = engine.speak(long)
    await anext(pieces)
    await pieces.aclose()

    assert 1.0 < duration(await spoken(engine)) < 4.0
    assert worker_pids() == [pid]


async def test_closing_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = Espeak(workers=2)
    await engine.start()
    pids = worker_pids()
    assert os.listdir(tmp_path)
    await engine.close()

    assert not any(map(runs, pids))
    assert os.listdir(tmp_path) == []


async def test_a_directory_with_a_long_path_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    engine = Espeak()

    with pytest.raises(EngineError, match="Set TMPDIR"):
        await engine.start()
    await engine.close()
    assert os.listdir(deep) == []


async def test_an_engine_without_its_files_or_processes_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for owner, name, missing, words in (
        ("espeakng_loader", "get_data_path", lambda: str(tmp_path / "gone"), "engine"),
        ("sys", "executable", str(tmp_path / "gone"), "worker"),
    ):
        engine = Espeak(workers=1)
        with monkeypatch.context() as broken:
            broken.setattr(f"{owner}.{name}", missing)
            with pytest.raises(EngineError, match=f"The espeak {words} does not start: No such"):
                await engine.start()

        assert await spoken(engine), "it starts once what was missing is there"
        await engine.close()
