"""The victim and the attackers as processes that end with their parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from tests.resilience.attackers.tools import BEGUN, IDLE
from tests.resilience.victim import ANSWER_SECONDS, Kind, Sample
from tests.support.live import ROOT
from tests.support.until import until

_END_SECONDS = 90.0


class _Program:
    """A Python module that runs until its standard input is closed.

    As a context manager it is killed when an exception leaves the block.
    """

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._end()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def begin_end(self) -> None:
        """Close its standard input, which ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _end(self) -> None:
        self.begin_end()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class AttackerProgram(_Program):
    """One attacker; ``end`` returns the answers to it."""

    def __init__(self, name: str, target: Path, *, idle: bool = False) -> None:
        """With ``idle`` it gets only processor time that nothing else wants."""
        priority = [IDLE] if idle else []
        super().__init__("tests.resilience.attackers", name, str(target), *priority)

    def wait_until_begun(self) -> None:
        """Return when the gateway has answered it, or accepted a connection."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{BEGUN}\n", "the attacker ended early"

    def begin_end(self) -> None:
        """End it with an ordinary priority: idle processor time may not come for minutes."""
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                os.sched_setscheduler(self._process.pid, os.SCHED_OTHER, os.sched_param(0))
        super().begin_end()

    def end(self) -> dict[str, int]:
        assert self._process.stdout is not None
        self._end()
        said = self._process.stdout.read()
        self._process.stdout.close()
        assert self._process.returncode == 0, "the attacker ended early: see its traceback"
        answers: dict[str, int] = json.loads(said)
        return answers


class VictimProgram(_Program):
    """The victim, whose samples are collected while it works."""

    def __init__(self, target: Path) -> None:
        super().__init__("tests.resilience.victim", str(target))
        self._samples: list[Sample] = []
        self._reading = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reading.start()
        return super().__enter__()

    def _end(self) -> None:
        super()._end()
        self._reading.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._samples.append(msgspec.json.decode(line, type=Sample))

    def between(self, began: float, ended: float) -> list[Sample]:
        """The samples begun in that time (``time.monotonic``), once all are answered."""
        self.wait_for(Kind, ended)
        return [sample for sample in list(self._samples) if began <= sample.began < ended]

    def wait_for(self, kinds: Iterable[Kind], since: float) -> None:
        """Return when a request of each of ``kinds`` that began after ``since`` was answered."""
        missing = set(kinds)
        seen = 0

        def all_seen() -> bool:
            nonlocal seen
            assert self._process.poll() is None, "the victim has ended"
            samples = self._samples[seen:]
            seen += len(samples)
            missing.difference_update(sample.kind for sample in samples if sample.began >= since)
            return not missing

        until(all_seen, ANSWER_SECONDS * 2)
