"""Compares a probe's findings with the catalog, and writes the changes.

It changes settings of the backend, and the abilities and context length of its models' entries.
Identifiers, weights, prices and the lifecycle are never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from core import clock
from inference.catalog import lifecycle
from inference.models import Backend, Deployment, ModelEntry
from inference.probe.findings import Found, ModelFindings, ServerFindings, fitting
from inference.wire.dialects import PrefixCache, RunningUsage


@dataclass(frozen=True)
class Change:
    """A column that differs from the probe's finding, and the reason."""

    row: Backend | ModelEntry
    column: str
    before: str | int | bool
    value: str | int | bool
    why: str

    def __str__(self) -> str:
        kind = "backend" if isinstance(self.row, Backend) else "model"
        return f"{kind} {self.row}: {self.column} {self.before} -> {self.value} ({self.why})"


@dataclass(frozen=True)
class Comparison:
    """The differences: ``changes`` can be written, ``remarks`` are for the operator to decide."""

    changes: Sequence[Change]
    remarks: Sequence[str]


def compare(backend: Backend, server: ServerFindings) -> Comparison:
    """Compare the catalog's ``backend`` and its models with the findings about ``server``.

    Returns no differences when chat does not work, because nothing is known then.
    """
    if not server.working:
        return Comparison([], [])
    changes = list(_of_backend(backend, server))
    remarks = list(_remarks_on_backend(backend, server))
    by_name = {model.name: model for model in server.working}
    deployments = Deployment.objects.filter(backend=backend, enabled=True)
    for deployment in deployments.select_related("weights"):
        model = by_name.get(deployment.model)
        if model is None:
            continue
        elsewhere = (
            Deployment.objects.filter(weights=deployment.weights, enabled=True)
            .exclude(pk=deployment.pk)
            .exists()
        )
        for entry in ModelEntry.objects.filter(weights=deployment.weights):
            if lifecycle.status(entry, clock.now()) is lifecycle.Status.RETIRED:
                continue
            for each in _of_entry(entry, model, elsewhere=elsewhere):
                if isinstance(each, Change):
                    changes.append(each)
                else:
                    remarks.append(each)
    return Comparison(changes, remarks)


def write(changes: Sequence[Change]) -> None:
    """Write all of ``changes`` or none; workers reload as after any change of the catalog.

    Raises ``django.core.exceptions.ValidationError``, also when a backend's address was changed
    since the probe: the key of the new address would go to the old one.
    """
    rows = {change.row.pk: change.row for change in changes}
    with transaction.atomic():
        for row in rows.values():
            row.refresh_from_db()
            for change in changes:
                if change.row.pk == row.pk:
                    _refuse_another_place(row, change)
                    setattr(row, change.column, change.value)
            row.full_clean()
            row.save()


def _refuse_another_place(row: Backend | ModelEntry, change: Change) -> None:
    if isinstance(row, Backend) and change.column == "base_url" and row.base_url != change.before:
        raise ValidationError(
            f"The address of backend {row} was changed meanwhile. Nothing is written: probe again."
        )


def created(
    name: str, server: ServerFindings, *, api_key_env: str, headers: dict[str, str]
) -> Backend:
    """Create a backend for ``server``; it serves nothing before it has a deployment.

    Raises ``django.core.exceptions.ValidationError``.
    """
    found = fitting(server)
    settings: dict[str, Any] = {
        "running_usage": found.running_usage.value,
        "output_cap_field": found.output_cap_field.value,
        "prefix_cache": found.prefix_cache.value,
        "keep_alive": found.keep_alive.value,
    }
    known = {column: value for column, value in settings.items() if value is not None}
    row = Backend(
        name=name, base_url=server.base_url, api_key_env=api_key_env, headers=headers, **known
    )
    row.full_clean()
    row.save()
    return row


def _of_backend(backend: Backend, server: ServerFindings) -> Iterator[Change]:
    found = fitting(server)
    if backend.base_url.rstrip("/") != found.base_url:
        yield _change(backend, "base_url", found.base_url, server.connection.words)
    # A backend that learns its dialect from its streams needs none.
    if found.running_usage.value is not None and backend.running_usage not in (
        found.running_usage.value,
        RunningUsage.AUTO,
    ):
        yield _setting(backend, "running_usage", found.running_usage)
    if found.output_cap_field.value not in (None, backend.output_cap_field):
        yield _setting(backend, "output_cap_field", found.output_cap_field)
    # A backend without kept connections works with any server; the operator may have a reason.
    if found.keep_alive.value == "off" != backend.keep_alive:
        yield _setting(backend, "keep_alive", found.keep_alive)
    # A backend that refuses the salt refuses every request.
    if found.prefix_cache.value is PrefixCache.SHARED and backend.prefix_cache != "shared":
        yield _setting(backend, "prefix_cache", found.prefix_cache)


def _remarks_on_backend(backend: Backend, server: ServerFindings) -> Iterator[str]:
    found = fitting(server).prefix_cache
    if found.value is PrefixCache.ORGANIZATION and backend.prefix_cache == "shared":
        # The operator may want one cache, and the salt empties what is cached.
        yield (
            f"backend {backend}: prefix_cache is shared; organization would keep what organizations "
            f"send apart ({found.words})"
        )


def _setting(backend: Backend, column: str, found: Found[Any]) -> Change:
    return _change(backend, column, str(found.value), found.words)


def _change(row: Backend | ModelEntry, column: str, value: str | int | bool, why: str) -> Change:
    return Change(row, column, getattr(row, column), value, why)


def _of_entry(
    entry: ModelEntry, model: ModelFindings, *, elsewhere: bool
) -> Iterator[Change | str]:
    """Compare one entry; ``elsewhere``: another backend serves the weights too."""
    for column, found in (
        ("tool_calling", model.tool_calling),
        ("structured_output", model.structured_output),
    ):
        promised = bool(getattr(entry, column))
        if found.value is None or found.value is promised:
            continue
        if found.value and elsewhere:
            yield f"model {entry}: {column} is off; this backend can do it, others were not asked"
        else:
            yield _change(entry, column, found.value, found.words)
    context = model.context_length
    if context.value is None or context.value == entry.context_length:
        return
    if context.value > entry.context_length:
        yield (
            f"model {entry}: context_length is {entry.context_length}; "
            f"the server takes {context.value} ({context.words})"
        )
        return
    yield _change(entry, "context_length", context.value, context.words)
    if entry.default_max_output_tokens > context.value:
        yield _change(
            entry, "default_max_output_tokens", context.value, "at most the context length"
        )
