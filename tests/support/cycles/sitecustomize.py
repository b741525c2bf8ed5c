"""Lists the objects that only the garbage collector frees, in a process that has this on its path.

Python imports it at its start (documentation of the module ``site``). On SIGUSR1 the process stops
collecting, on SIGUSR2 it writes the number of such objects of each type to the file in the
environment variable ``SVC_TEST_CYCLES``, as JSON. Only the gateway itself does so: its workers for
texts and speech ignore the path.
"""

import gc
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path


def _begin(*_: object) -> None:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    _write({})


def _end(*_: object) -> None:
    gc.collect()
    found = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()
    _write(found)


def _write(found: dict[str, int]) -> None:
    whole = Path(os.environ["SVC_TEST_CYCLES"])
    part = whole.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(whole)


if "serve_process" in sys.argv:
    signal.signal(signal.SIGUSR1, _begin)
    signal.signal(signal.SIGUSR2, _end)
