"""Sets the environment before Django reads its settings (``-p tests.support.environment`` in pyproject.toml).

Tests keep their databases, journals and secrets in their own directory, never in ``var/``.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile

import httpcore2

if "PYTEST_XDIST_WORKER" not in os.environ and "SVC_DATA_DIR" not in os.environ:
    os.environ["SVC_DATA_DIR"] = tempfile.mkdtemp(prefix="svc-test-")
    atexit.register(shutil.rmtree, os.environ["SVC_DATA_DIR"], ignore_errors=True)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.support.settings")
# A test that leaves a stream open does not wait for it.
os.environ.setdefault("SVC_DRAIN_SECONDS", "30")
# Each client of httpx2 reads the certificates of the machine again, which takes 20 ms of the processor.
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)
