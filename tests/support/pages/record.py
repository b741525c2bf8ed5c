"""``python -m tests.support.pages.record``: records the answers that the docs show again."""

from __future__ import annotations

import os
import sys
from typing import Final

import pytest

WRITES: Final = "SVC_TEST_WRITES_RECORDINGS"
"""With this variable the test that compares the recorded answers writes them."""

if __name__ == "__main__":
    os.environ[WRITES] = "1"
    sys.exit(pytest.main(["-q", "tests/svc_project/reference/test_recordings.py"]))
