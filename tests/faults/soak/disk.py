"""A disk for a soak's gateway, which can be filled and whose directories can be made immutable."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_DISK_BYTES: Final = 1 << 30


class Disk:
    """A file system of 1 GiB in a file, mounted at ``path``. Needs root."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "disk"
        self.path.mkdir()
        image = directory / "disk.img"
        with image.open("wb") as file:
            file.truncate(_DISK_BYTES)
        _quietly("mkfs.ext4", "-q", "-m", "0", str(image))
        _quietly("mount", "-o", "loop", str(image), str(self.path))
        self._ballast = self.path / "ballast"

    def fill(self) -> None:
        """Leave no free byte."""
        size = 1 << 20
        with self._ballast.open("ab", buffering=0) as file:
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        _quietly("umount", "--lazy", str(self.path))


def make_immutable(directory: Path, *, immutable: bool) -> None:
    """Prevent files from being created in ``directory`` or removed from it, even by root (chattr(1))."""
    _quietly("chattr", "+i" if immutable else "-i", str(directory))


def _quietly(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
