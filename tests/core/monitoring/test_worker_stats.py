"""What the workers of one host tell each other while two generations of them run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.monitoring.worker_stats import WorkerStats


def worker(directory: Path, number: int, generation: str, told: str) -> WorkerStats:
    stats = WorkerStats(directory, number, generation)
    stats.register("told", lambda: told)
    stats.publish()
    return stats


def test_two_generations_of_one_number_both_tell(tmp_path: Path) -> None:
    old = worker(tmp_path, 0, "old", "from the old one")
    worker(tmp_path, 0, "new", "from the new one")
    scraped = worker(tmp_path, 1, "new", "from the second")
    command = WorkerStats(tmp_path, 99)

    assert sorted(command.read("told", str)) == [
        (0, "from the new one"),
        (0, "from the old one"),
        (1, "from the second"),
    ]
    assert scraped.read("told", str, own_generation=True) == [
        (0, "from the new one"),
        (1, "from the second"),
    ]

    old.withdraw()
    assert command.read("told", str) == [(0, "from the new one"), (1, "from the second")]


def test_the_file_of_a_killed_worker_is_removed_later(tmp_path: Path) -> None:
    worker(tmp_path, 0, "killed", "nothing")
    [left] = tmp_path.iterdir()
    before = time.time() - 7200
    os.utime(left, (before, before))

    worker(tmp_path, 0, "new", "something")

    assert not left.exists()


def test_a_disk_that_takes_nothing_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stats = WorkerStats(tmp_path / "file" / "workers", 0)
    (tmp_path / "file").touch()

    for _ in range(3):
        stats.try_to_publish()

    assert caplog.messages == ["the stats of this process are not published: Not a directory"]
