"""Applies the chat tables of a catalog file to the database, in one transaction.

Rows that the file does not name stay unchanged. If it names a set of weights, their deployments
that it leaves out are switched off. Lifecycle changes go through ``inference.catalog.lifecycle``,
prices through ``inference.catalog.pricing``; no published model is renamed, re-pinned or withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import models, transaction

from accounts.changes import CATALOG, lock
from accounts.models import Organization
from core import clock
from core.catalog_tables import CatalogFileError, save, update
from core.clock import iso_milliseconds
from core.money import price_text
from inference.catalog import lifecycle
from inference.catalog.file import BackendTable, CatalogFile, ModelTable
from inference.catalog.pricing import PriceError, ensure_price
from inference.models import Backend, Deployment, ModelEntry, ModelLimit, WeightsRecord

# Where a column's name differs from the key of its table.
_KEYS = {"identifier": "id"}


@transaction.atomic
def load_catalog(file: CatalogFile) -> list[str]:
    """Apply ``file`` and return a description of each change, in the order they were made.

    Raises ``CatalogFileError`` that names the table and key; nothing is changed then.
    """
    lock(CATALOG)
    return _Load(file).run()


class _Load:
    """One load: its changes so far, and the entries that it created."""

    def __init__(self, file: CatalogFile) -> None:
        self.file = file
        self.changes: list[str] = []
        self.created: set[str] = set()
        self.entries: dict[str, ModelEntry] = {}

    def run(self) -> list[str]:
        for index, backend in enumerate(self.file.backends):
            self._backend(backend, f"backends[{index}]")
        places = [(f"models[{index}]", model) for index, model in enumerate(self.file.models)]
        for where, model in places:
            weights = self._weights(model, where)
            self.entries[model.id] = self._entry(model, weights, where)
            self._deployments(model, weights, where)
            self._price(model, where)
            self._limits(model, where)
        self._switch_off_left_out()
        for where, model in places:
            self._publish(model, where)
        # After all are published, because a successor may stand further down.
        for where, model in places:
            self._supersede(model, where)
        return self.changes

    def _backend(self, table: BackendTable, where: str) -> None:
        values = {
            name: getattr(table, name)
            for name in table.__struct_fields__
            if name != "continuous_usage"
        }
        values["running_usage"] = table.dialect
        row = Backend.objects.filter(name=table.name).first()
        if row is None:
            save(Backend(**values), where, _KEYS)
            self.changes.append(f"created backend {table.name}")
        else:
            self._update(row, f"backend {table.name}", values, where)

    def _weights(self, model: ModelTable, where: str) -> WeightsRecord:
        row = WeightsRecord.objects.filter(name=model.weights).first()
        if row is None:
            source, _, revision = model.weights.rpartition("@")
            row = WeightsRecord(
                name=model.weights,
                source=source or model.weights,
                revision=revision if source else "",
                tokenizer=self._tokenizer(model.weights),
            )
            save(row, where, {"name": "weights"})
            self.changes.append(f"created weights {row}")
        elif model.tokenizer is not None and model.tokenizer != row.tokenizer:
            raise CatalogFileError(
                f"{where}.tokenizer",
                f"{row} has {row.tokenizer or 'none'}, and a weights record never changes. "
                "Give the weights a new name.",
            )
        return row

    def _tokenizer(self, weights: str) -> str:
        """Return the tokenizer that any model of the file names for ``weights``, or ""."""
        return next(
            (
                model.tokenizer
                for model in self.file.models
                if model.weights == weights and model.tokenizer is not None
            ),
            "",
        )

    def _entry(self, model: ModelTable, weights: WeightsRecord, where: str) -> ModelEntry:
        values = {
            "weights": weights,
            "context_length": model.context_length,
            "max_request_bytes": model.max_request_bytes,
            "default_max_output_tokens": model.default_max_output_tokens,
            "tool_calling": model.tool_calling,
            "structured_output": model.structured_output,
            "extra_fields": model.extra_fields,
            "defaults": model.defaults,
            "keep_alive_seconds": model.keep_alive_seconds,
        }
        row = ModelEntry.objects.filter(identifier=model.id).select_related("weights").first()
        if row is None:
            row = ModelEntry(identifier=model.id, **values)
            save(row, where, _KEYS)
            self.created.add(model.id)
            self.changes.append(f"created model {row}")
            return row
        if row.published_at is not None and row.weights != weights:
            raise CatalogFileError(
                f"{where}.weights",
                f"{row} is pinned to {row.weights}. Publish {weights} under a new id.",
            )
        if row.published_at is not None and not model.published:
            raise CatalogFileError(
                f"{where}.published", f"{row} is published, and that cannot be undone."
            )
        if lifecycle.status(row, clock.now()) is not lifecycle.Status.RETIRED:
            self._update(row, f"model {row}", values, where)
        return row

    def _deployments(self, model: ModelTable, weights: WeightsRecord, where: str) -> None:
        for index, item in enumerate(model.backends):
            place = f"{where}.backends[{index}]"
            backend = Backend.objects.filter(name=item.name).first()
            if backend is None:
                raise CatalogFileError(f"{place}.name", f"There is no backend {item.name}.")
            row = Deployment.objects.filter(weights=weights, backend=backend).first()
            if row is None:
                row = Deployment(
                    weights=weights,
                    backend=backend,
                    model=item.model,
                    weight=item.weight,
                    draining=bool(item.draining),
                )
                save(row, place, _KEYS)
                self.changes.append(f"created deployment {row} as {item.model}")
            else:
                values = {"model": item.model, "enabled": True, "weight": item.weight}
                if item.draining is not None:
                    values["draining"] = item.draining
                self._update(row, f"deployment {row}", values, place)

    def _switch_off_left_out(self) -> None:
        named = {
            (model.weights, item.name) for model in self.file.models for item in model.backends
        }
        rows = Deployment.objects.filter(
            weights__name__in={model.weights for model in self.file.models}, enabled=True
        ).select_related("weights", "backend")
        for row in rows:
            if (row.weights.name, row.backend.name) not in named:
                # One that comes back serves.
                row.enabled = row.draining = False
                row.save()
                self.changes.append(f"switched off deployment {row}, which the file leaves out")

    def _price(self, model: ModelTable, where: str) -> None:
        entry, pricing = self.entries[model.id], model.pricing
        if pricing is None or lifecycle.status(entry, clock.now()) is lifecycle.Status.RETIRED:
            return
        try:
            price = ensure_price(
                entry, pricing.input_per_mtok, pricing.output_per_mtok, pricing.currency
            )
        except PriceError as error:
            raise CatalogFileError(f"{where}.pricing.{error.field}", error.message) from None
        if price is not None:
            self.changes.append(
                f"price of {entry} from {iso_milliseconds(price.effective_from)}: "
                f"{price_text(price.input_per_mtok)} in, {price_text(price.output_per_mtok)} out, "
                f"{price.currency} per million tokens"
            )

    def _limits(self, model: ModelTable, where: str) -> None:
        if model.limits is None:
            return
        entry = self.entries[model.id]
        rows = ModelLimit.objects.filter(entry=entry).select_related("organization", "entry")
        left_out = {row.organization.name: row for row in rows}
        for index, item in enumerate(model.limits):
            place = f"{where}.limits[{index}]"
            row = left_out.pop(item.organization, None)
            values = {
                "requests_per_minute": item.requests_per_minute,
                "tokens_per_minute": item.tokens_per_minute,
            }
            if row is not None:
                self._update(row, f"limit of {row}", values, place)
                continue
            organization = Organization.objects.filter(name=item.organization).first()
            if organization is None:
                raise CatalogFileError(
                    f"{place}.organization", f"There is no organization {item.organization}."
                )
            row = ModelLimit(entry=entry, organization=organization, **values)
            save(row, place, _KEYS)
            self.changes.append(f"created limit of {row}")
        for row in left_out.values():
            self.changes.append(f"deleted limit of {row}")
            row.delete()

    def _publish(self, model: ModelTable, where: str) -> None:
        entry = self.entries[model.id]
        if model.published and entry.published_at is None:
            with _lifecycle_errors(where):
                lifecycle.publish(entry)
            self.changes.append(f"published {entry}")

    def _supersede(self, model: ModelTable, where: str) -> None:
        if model.superseded_by is None:
            return
        entry = self.entries[model.id]
        successor = (
            self.entries.get(model.superseded_by)
            or ModelEntry.objects.filter(identifier=model.superseded_by).first()
        )
        if successor is None:
            raise CatalogFileError(
                f"{where}.superseded_by", f"There is no model {model.superseded_by}."
            )
        shutdown_at = model.shutdown_at or entry.shutdown_at
        if (entry.superseded_by_id, entry.shutdown_at) == (successor.pk, shutdown_at):
            return
        with _lifecycle_errors(where):
            lifecycle.supersede(entry, successor, shutdown_at, restoring=model.id in self.created)
        until = f", shutdown at {iso_milliseconds(shutdown_at)}" if shutdown_at else ""
        self.changes.append(f"superseded {entry} by {successor}{until}")

    def _update(self, row: models.Model, label: str, values: dict[str, Any], where: str) -> None:
        self.changes += update(row, label, values, where, _KEYS)


@contextmanager
def _lifecycle_errors(where: str) -> Iterator[None]:
    try:
        yield
    except lifecycle.LifecycleError as error:
        place = f"{where}.{error.field}" if error.field else where
        raise CatalogFileError(place, error.message) from None
