"""The admissions in a gateway's journal."""

from __future__ import annotations

from pathlib import Path


def admissions(data: Path, organization_id: str) -> int:
    """Count an organization's admitted requests in the journals in ``data``."""
    texts = [path.read_text() for path in (data / "journal").glob("*.log")]
    return sum(
        line.count('"admitted"')
        for text in texts
        for line in text.splitlines()
        if organization_id in line
    )
