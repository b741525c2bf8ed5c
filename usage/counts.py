"""The one thing that is added to a row later: the independent count of a sampled request."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from usage.models import Reconciliation, UsageRollup, UsageRow


@dataclass(frozen=True, slots=True)
class IndependentCount:
    """What the gateway's own tokenizer found; figures are None where there is no tokenizer."""

    reconciliation: Reconciliation
    input_tokens: int | None = None
    output_tokens: int | None = None
    divergence: str | None = None


def fill_in(request_id: str, count: IndependentCount) -> bool:
    """Add ``count`` to the row and its roll-up, if the row is there and has none yet.

    Returns whether it did. Raises ``django.db.Error``.
    """
    with transaction.atomic():
        rows = UsageRow.objects.filter(request_id=request_id, reconciliation=None)
        filled = rows.update(
            svc_counted_input_tokens=count.input_tokens,
            svc_counted_output_tokens=count.output_tokens,
            reconciliation=count.reconciliation,
            reconciliation_divergence=count.divergence,
        )
        if filled and count.input_tokens is not None and count.output_tokens is not None:
            row = UsageRow.objects.get(request_id=request_id)
            UsageRollup.objects.filter(
                organization_id=row.organization_id,
                hour=row.occurred_at.replace(minute=0, second=0, microsecond=0),
                api_key_id=row.api_key_id,
                model_id=row.model_id,
                model_identifier=row.model_identifier,
                price_currency=row.price_currency,
                input_price_per_mtok=row.input_price_per_mtok,
                output_price_per_mtok=row.output_price_per_mtok,
            ).update(
                svc_counted_input_tokens=F("svc_counted_input_tokens") + count.input_tokens,
                svc_counted_output_tokens=F("svc_counted_output_tokens") + count.output_tokens,
                svc_counted_requests=F("svc_counted_requests") + 1,
            )
    return bool(filled)
