"""Sets the environment before Django reads its settings (``-p tests.support.environment`` in pyproject.toml).

Tests keep their databases, journals and secrets in their own directory, never in ``var/``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ and "SVC_DATA_DIR" not in os.environ:
    os.environ["SVC_DATA_DIR"] = tempfile.mkdtemp(prefix="svc-test-")
    atexit.register(shutil.rmtree, os.environ["SVC_DATA_DIR"], ignore_errors=True)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.support.settings")
# A test that leaves a stream open does not wait for it.
os.environ.setdefault("SVC_DRAIN_SECONDS", "30")
