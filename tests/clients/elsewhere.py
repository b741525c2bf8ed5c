"""Python programs that live in an environment of their own, ``.venv-clients`` (``make clients``).

They bring several hundred megabytes and pins of their own, which the project's environment is
spared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live import ROOT

BIN = ROOT / ".venv-clients/bin"


def program(name: str) -> Path:
    """A program of that environment. Skips the test where it is not installed."""
    found = BIN / name
    if not found.exists():
        pytest.skip(f"{name} is missing in .venv-clients: run `make clients` to run this test")
    return found
