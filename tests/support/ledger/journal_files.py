"""A gateway's journal: the admissions in it, and segments that dead processes left."""

from __future__ import annotations

from pathlib import Path


def dead_segment(directory: Path, name: str, *records: bytes) -> Path:
    """A segment whose owner is dead."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(b"".join(records))
    return path


def admissions(data: Path, organization_id: str) -> int:
    """Count an organization's admitted requests in the journals in ``data``."""
    texts = [path.read_text() for path in (data / "journal").glob("*.log")]
    return sum(
        line.count('"admitted"')
        for text in texts
        for line in text.splitlines()
        if organization_id in line
    )
