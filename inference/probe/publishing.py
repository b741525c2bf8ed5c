"""From findings about a model server to the tables of a catalog file that publish its models.

``make run MODEL_SERVER=...`` and the admin's page *Add a server* load what is made here, by
``inference.catalog.load``, as any catalog file is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec

from inference.catalog.file import (
    BackendTable,
    CatalogFile,
    DeploymentTable,
    ModelTable,
    PricingTable,
)
from inference.catalog.stored import stored_backends, stored_models
from inference.models import Deployment
from inference.probe.findings import ModelFindings, ServerFindings, fitting
from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage

RIGHTS: Final = (
    "inference.add_backend",
    "inference.change_backend",
    "inference.add_deployment",
    "inference.add_weightsrecord",
    "inference.add_modelentry",
    "inference.change_modelentry",
    "inference.add_price",
)
"""The permissions of an operator who adds a server and publishes its models: what the same takes by hand. A
check of the server sends its key, as the test of a backend does."""

DEFAULT_OUTPUT: Final = 4_096
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
_LONGEST_NAME: Final = 80


@dataclass(frozen=True)
class Wanted:
    """A model of a server that is to be published. ``context_length`` is in tokens."""

    findings: ModelFindings
    identifier: str
    context_length: int
    pricing: PricingTable


def backend_table(server: ServerFindings, api_key_env: str, name: str = "") -> BackendTable:
    """The backend for ``server``, with the settings that fit; by default it is named by its address."""
    found = fitting(server)
    return BackendTable(
        name=name or backend_name(server.base_url),
        base_url=server.base_url,
        api_key_env=api_key_env,
        running_usage=found.running_usage.value or RunningUsage.AUTO,
        output_cap_field=found.output_cap_field.value or OutputCapField.BOTH,
        prefix_cache=found.prefix_cache.value or PrefixCache.SHARED,
        keep_alive=found.keep_alive.value or KeepAlive.AUTO,
    )


def model_table(
    weights: str,
    identifier: str,
    models: Sequence[ModelFindings],
    deployments: Sequence[DeploymentTable],
    context_length: int,
    pricing: PricingTable,
) -> ModelTable:
    """A published model with the abilities that each of ``models``, which serve it, has."""
    return ModelTable(
        id=identifier,
        weights=weights,
        backends=list(deployments),
        context_length=context_length,
        max_request_bytes=MAX_REQUEST_BYTES,
        default_max_output_tokens=min(DEFAULT_OUTPUT, context_length),
        tool_calling=all(model.tool_calling.value for model in models),
        structured_output=all(model.structured_output.value for model in models),
        published=True,
        pricing=pricing,
    )


def additions(backend: BackendTable, wanted: Sequence[Wanted]) -> CatalogFile:
    """The tables that publish ``wanted`` on ``backend`` and change nothing else of the catalog.

    A backend that the catalog has stays as it is there, and so does a model: it gets the deployment, and
    is published if it is a draft. Other deployments of the weights are named, because a load switches
    off what it is not told of. Raises ``django.db.Error``.
    """
    stored = {table.id: table for table in stored_models()}
    known = [table for table in stored_backends() if table.name == backend.name]
    tables = []
    for each in wanted:
        name, entry = each.findings.name, stored.get(each.identifier)
        weights = entry.weights if entry else name
        there = _enabled(weights)
        if backend.name not in {table.name for table in there}:
            there = [*there, DeploymentTable(name=backend.name, model=name)]
        if entry is None:
            findings = [each.findings]
            table = model_table(
                weights, each.identifier, findings, there, each.context_length, each.pricing
            )
        else:
            pricing = entry.pricing if entry.published else each.pricing
            table = msgspec.structs.replace(
                entry, backends=there, limits=None, published=True, pricing=pricing
            )
        tables.append(table)
    return CatalogFile(backends=[] if known else [backend], models=tables)


def _enabled(weights: str) -> list[DeploymentTable]:
    rows = Deployment.objects.filter(weights__name=weights, enabled=True).select_related("backend")
    return [
        DeploymentTable(name=row.backend.name, model=row.model, weight=row.weight) for row in rows
    ]


def backend_name(address: str) -> str:
    """The name of the backend at ``address``: ``127.0.0.1:11434``.

    It includes the path where that is more than ``/v1``, so that two servers have two names.
    """
    parts = urlsplit(address)
    return (parts.netloc + parts.path.rstrip("/").removesuffix("/v1"))[:_LONGEST_NAME] or "server"


def identifiers_of(models: Iterable[str]) -> dict[str, str]:
    """A well-formed identifier for each of ``models``, no two alike."""
    found: dict[str, str] = {}
    for model in models:
        parts = 1
        identifier = identifier_of(model)
        while identifier in found.values() and parts < len(_segments(model)):
            parts += 1
            identifier = identifier_of(model, parts)
        number = 2
        while identifier in found.values():
            identifier = f"{identifier_of(model)[:190]}-{number}"
            number += 1
        found[model] = identifier
    return found


def identifier_of(model: str, parts: int = 1) -> str:
    """A well-formed identifier for a server's ``model``.

    It uses only the last ``parts`` of a path on the server's disk, because callers see identifiers.
    """
    segments = _segments(model)
    is_path = re.match(r"[/\\.~]|[A-Za-z]:\\", model) is not None
    return ("/".join(segments[-parts:] if is_path else segments) or "model")[:200].rstrip("/")


def _segments(model: str) -> list[str]:
    """The parts between slashes, reduced to letters of identifiers; without empty ones."""
    parts = [
        re.sub(r"[^A-Za-z0-9._:-]", "-", part).lstrip("._:-") for part in re.split(r"[/\\]", model)
    ]
    return [part for part in parts if part]
