"""Python programs in a separate environment, ``.venv-clients`` (``make clients``).

They need several hundred megabytes and their own pins, which are kept out of the project's
environment.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live import ROOT

BIN = ROOT / ".venv-clients/bin"


def program(name: str) -> Path:
    """Return the path of a program in that environment. Skip the test if it is not installed."""
    found = BIN / name
    if not found.exists():
        pytest.skip(f"{name} is missing in .venv-clients: run `make clients` to run this test")
    return found
