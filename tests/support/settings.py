"""The gateway's settings, with those constants changed that tests name in ``SVC_TEST_CONSTANTS`` (JSON).

What no operator sets is no variable of the environment; a test that waits for a timer shortens it here,
in this process and in the processes that it starts.
"""

from __future__ import annotations

import json
import os

from svc_project.settings import *  # noqa: F403

SVC_CHANGE_POLL_SECONDS = 0.1
globals().update(json.loads(os.environ.get("SVC_TEST_CONSTANTS", "{}")))
