"""The journal's files: creating, locking and syncing them, and finding those of dead owners.

A file belongs to the process that holds its lock (flock). It gets the name of a segment only once
it is locked, or another worker could adopt it in between.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

LIVE: Final = ".log"
REFUSED: Final = ".refused"
_UNNAMED: Final = ".new"
_READ_BYTES: Final = 1024 * 1024
_UNNAMED_SECONDS: Final = 60.0
"""A file without its final name for this long belongs to a process that died creating it."""


def sync_directory(directory: Path) -> None:
    """Return when the names in ``directory`` are on the disk. Raises ``OSError``."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def try_disk(directory: Path, size: int) -> None:
    """Write ``size`` bytes to a file of ``directory``, and delete it. Raises ``OSError``."""
    with tempfile.TemporaryFile(dir=directory, prefix="try-") as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())


class Segment:
    """A locked, append-only file of records. Raises ``OSError`` when it cannot be created.

    ``owed``: settled requests in it that the database does not have. ``has_settled``: whether there
    was ever one. ``born``: its size in bytes when it became the current segment.
    """

    def __init__(self, directory: Path, suffix: str = LIVE) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = directory / f"{os.getpid()}-{secrets.token_hex(6)}{suffix}"
        unnamed = self.path.with_suffix(_UNNAMED)
        self._file = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            unnamed.rename(self.path)
        except OSError:
            with suppress(OSError):
                unnamed.unlink(missing_ok=True)
            os.close(self._file)
            raise
        self._name_is_synced = False
        self._holders = 0
        self._closing = False
        self.size = 0
        self.born = 0
        self.owed = 0
        self.has_settled = False
        self.broken = False

    def append(self, line: bytes) -> None:
        """Write one record. Raises ``OSError`` when it is not written whole."""
        written = os.write(self._file, line)
        if written != len(line):
            # A torn record would hide the records that follow it.
            try:
                os.ftruncate(self._file, self.size)
            except OSError:
                self.broken = True
            raise OSError("the journal took only a part of a record")
        self.size += written

    def sync(self) -> None:
        """Return when everything appended so far is on the disk. Raises ``OSError``."""
        if not self._name_is_synced:
            sync_directory(self.path.parent)
            self._name_is_synced = True
        os.fdatasync(self._file)

    def read(self, offset: int, length: int) -> bytes:
        """Read the bytes at a place. Raises ``OSError``."""
        return os.pread(self._file, length, offset)

    def hold(self) -> None:
        """Keep the descriptor open while another thread uses it, until ``release``."""
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._closing and not self._holders:
            os.close(self._file)

    def remove(self) -> None:
        """Delete the file and close it."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        self.abandon()

    def abandon(self) -> None:
        """Unlock the file and leave it, if it still exists, to be adopted."""
        self._closing = True
        if not self._holders:
            os.close(self._file)


class Orphan:
    """A file whose owner died, locked by the process that adopts it."""

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file

    def read(self) -> bytes:
        """Read the whole file. Raises ``OSError``."""
        pieces = []
        size = 0
        while piece := os.pread(self._file, _READ_BYTES, size):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def append(self, line: bytes) -> None:
        """Append a record and sync it. Raises ``OSError``."""
        os.lseek(self._file, 0, os.SEEK_END)
        if os.write(self._file, line) != len(line):
            raise OSError("the journal took only a part of a record")
        os.fdatasync(self._file)

    def finish(self, *, keep: bool) -> None:
        """Delete the file, or rename it out of the way when ``keep``. Raises ``OSError``."""
        if keep:
            self.path.rename(self.path.with_suffix(".damaged"))
            sync_directory(self.path.parent)
        else:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the file."""
        os.close(self._file)


def abandoned(directory: Path, suffix: str = LIVE) -> Iterator[Path]:
    """Yield the files in ``directory`` that may be adopted, oldest name first."""
    yield from sorted(directory.glob(f"*{suffix}"))


def adopt_file(path: Path) -> Orphan | None:
    """Lock a file that no living process owns; None when one does, or when the file was deleted.

    The owner's death frees the lock, so a file is adopted once, however many workers try. Raises
    ``OSError`` when it cannot be opened or locked.
    """
    try:
        # Over NFS an exclusive lock needs a writable descriptor.
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():
            return Orphan(path, file)
    except BlockingIOError:
        pass
    except OSError:
        os.close(file)
        raise
    os.close(file)
    return None


def remove_unnamed(directory: Path) -> None:
    """Delete the unnamed files of processes that died creating them."""
    for path in directory.glob(f"*{_UNNAMED}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNNAMED_SECONDS:
                path.unlink(missing_ok=True)
