"""Files for ``load_catalog``, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Load = Callable[[str], list[str]]


BACKEND = """
[[backends]]
name = "gpu-1"
base_url = "http://127.0.0.1:9000/v1"
api_key_env = "SVC_BACKEND_KEY_GPU1"
max_concurrency = 256
continuous_usage = true
"""


MODEL = """
[[models]]
id = "acme/demo-8b"
weights = "acme/demo-8b@2026-11-01"
tokenizer = "o200k"
backends = [{ name = "gpu-1", model = "demo-8b-awq" }]
context_length = 32768
max_request_bytes = 1048576
default_max_output_tokens = 2048
tool_calling = true
structured_output = true
published = true
pricing = { input_per_mtok = "0.15", output_per_mtok = "0.60", currency = "USD" }
"""


SUCCESSOR = MODEL.replace('"acme/demo-8b"', '"acme/demo-8b-v2"').replace("@2026-11-01", "@2")


FILE = BACKEND + MODEL


FUTURE = f"{datetime.now(UTC).year + 1}-01-31T00:00:00Z"


def superseded(model: str = MODEL, shutdown_at: str = FUTURE) -> str:
    return f'{model}superseded_by = "acme/demo-8b-v2"\nshutdown_at = {shutdown_at}\n'


def edited(old: str, new: str) -> str:
    assert old in FILE
    return FILE.replace(old, new)
