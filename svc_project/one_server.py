"""Publishing one model of one model server, as ``make run MODEL_SERVER=... MODEL=...`` does.

deploy/one_server.toml is the catalog file; its values in angle brackets are filled in here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from svc_project.catalog import load_catalog_file

ASSUMED_CONTEXT: Final = 32_768
"""Tokens; of a server whose operator does not say."""
_DEFAULT_OUTPUT: Final = 4_096
_FILE: Final = settings.BASE_DIR / "deploy" / "one_server.toml"
_LONGEST_NAME: Final = 80


@dataclass(frozen=True)
class Published:
    """What ``publish_server`` did: the identifier to call, and what to tell the operator."""

    identifier: str
    changes: list[str]


def publish_server(base_url: str, model: str, context_length: int | None = None) -> Published:
    """Publish ``model`` of the OpenAI-compatible server at ``base_url``.

    ``context_length`` is in tokens. Raises ``CatalogFileError`` when the address or the name
    cannot be used.
    """
    address = mended_address(base_url)
    identifier = identifier_of(model)
    context = ASSUMED_CONTEXT if context_length is None else context_length
    notes = []
    if address != base_url:
        notes.append(f"the address ends in /v1 on such servers: {address} is used")
    elif not address.rstrip("/").endswith("/v1"):
        notes.append(f"the address does not end in /v1; {address}/chat/completions is called")
    if identifier != model:
        notes.append(f"{model} is no identifier of the catalog: callers send {identifier}")
    if context_length is None:
        notes.append(f"a context of {context} tokens is assumed; CONTEXT=... says another")
    content = _FILE.read_text(encoding="utf-8")
    values = {
        "BACKEND": backend_name(address),
        "BASE_URL": address,
        "IDENTIFIER": identifier,
        "MODEL": model,
        "CONTEXT": context,
        "OUTPUT": min(_DEFAULT_OUTPUT, context),
    }
    for mark, value in values.items():
        # What JSON writes as a string is one in TOML too.
        content = content.replace(f'"<{mark}>"', json.dumps(value, ensure_ascii=False))
    return Published(identifier, notes + load_catalog_file(content.encode()))


def mended_address(base_url: str) -> str:
    """``base_url`` with ``/v1``, where it has no path at all."""
    parts = urlsplit(base_url)
    if parts.netloc and parts.path in ("", "/") and not parts.query and not parts.fragment:
        return f"{parts.scheme}://{parts.netloc}/v1"
    return base_url


def backend_name(address: str) -> str:
    """The name of the backend at ``address``: ``127.0.0.1:11434``.

    With the path where it is more than ``/v1``, so that two servers have two names.
    """
    parts = urlsplit(address)
    return (parts.netloc + parts.path.rstrip("/").removesuffix("/v1"))[:_LONGEST_NAME] or "server"


def identifier_of(model: str) -> str:
    """A well-formed identifier for what a server calls ``model``.

    Of a path on the server's disk only the last part, because callers see identifiers.
    """
    parts = [
        re.sub(r"[^A-Za-z0-9._:-]", "-", part).lstrip("._:-") for part in re.split(r"[/\\]", model)
    ]
    parts = [part for part in parts if part]
    is_path = re.match(r"[/\\.~]|[A-Za-z]:\\", model) is not None
    return ("/".join(parts[-1:] if is_path else parts) or "model")[:200].rstrip("/")
