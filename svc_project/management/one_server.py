"""Publishes the models of model servers, for ``make run MODEL_SERVER=...``.

A probe finds the models and their settings; a model without a price gets the price zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.core.exceptions import ValidationError

from core import clock
from core.backends.validators import check_base_url
from core.money import price_text
from core.variables import secret_of
from inference.catalog.file import CatalogFile, DeploymentTable, ModelTable, PricingTable
from inference.catalog.load import load_catalog
from inference.catalog.pricing import price_in_force
from inference.models import ModelEntry
from inference.probe import findings
from inference.probe.client import Target
from inference.probe.findings import ModelFindings, ServerFindings
from inference.probe.publishing import backend_name, backend_table, identifiers_of, model_table
from inference.probe.run import ReportProgress, probe

KEY_VARIABLE: Final = "SVC_BACKEND_KEY_MODEL_SERVER"
"""The variable with the servers' key, if they need one."""
ASSUMED_CONTEXT: Final = 32_768
"""Tokens, when neither the server nor the operator gives the context."""


class NothingToServe(Exception):
    """No model of the servers works; the message gives the reason for each."""


@dataclass(frozen=True)
class Published:
    """The published identifiers, and the lines to print for the operator."""

    identifiers: list[str]
    lines: list[str]


def publish_servers(
    addresses: Sequence[str],
    models: Sequence[str] = (),
    context_length: int | None = None,
    report: ReportProgress = lambda _: None,
) -> Published:
    """Probe the servers at ``addresses`` concurrently, and publish the models that work.

    ``models``: names on the servers; empty for all that they list. ``context_length`` is in tokens,
    for servers that do not report it or whose context should be limited. A server that does not
    answer is reported and skipped. Raises ``NothingToServe`` when no model works, or not all of
    ``models``, and ``CatalogFileError`` for models that the catalog refuses.
    """
    for address in addresses:
        try:
            check_base_url(address)
        except ValidationError as error:
            raise NothingToServe(f"{address}: {' '.join(error.messages)}") from None
    key = secret_of(KEY_VARIABLE)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    targets = [Target(address, headers, has_key=key is not None) for address in addresses]

    async def all_at_once() -> list[ServerFindings]:
        return await asyncio.gather(*(probe(target, models, report) for target in targets))

    return publish(asyncio.run(all_at_once()), models, context_length, KEY_VARIABLE if key else "")


def publish(
    servers: Sequence[ServerFindings],
    wanted: Sequence[str] = (),
    context_length: int | None = None,
    api_key_env: str = "",
) -> Published:
    """Publish the working models of ``servers``; a model of several servers only once.

    Raises ``NothingToServe`` and ``CatalogFileError``.
    """
    lines = [line for server in servers for line in _told(server, api_key_env)]
    served: dict[str, list[tuple[ServerFindings, ModelFindings]]] = {}
    for server in servers:
        for model in server.working:
            served.setdefault(model.name, []).append((server, model))
    missing = [name for name in wanted if name not in served]
    if missing or not served:
        raise NothingToServe(_nothing(servers, missing, lines))
    identifiers = identifiers_of(served)
    for name, identifier in identifiers.items():
        if name != identifier:
            lines.append(f"{name} is no identifier of the catalog: callers send {identifier}")
    tables = []
    for name, places in served.items():
        context = _context([model for _, model in places], context_length)
        if context is None:
            lines.append(
                f"{name}: a context of {ASSUMED_CONTEXT} tokens is assumed; CONTEXT=... says another"
            )
        tables.append(_table(name, identifiers[name], places, context or ASSUMED_CONTEXT))
    backends = [backend_table(server, api_key_env) for server in servers if server.working]
    lines += load_catalog(CatalogFile(backends=backends, models=tables))
    return Published(list(identifiers.values()), lines)


def _table(
    name: str,
    identifier: str,
    places: Sequence[tuple[ServerFindings, ModelFindings]],
    context: int,
) -> ModelTable:
    served = [DeploymentTable(name=backend_name(each.base_url), model=name) for each, _ in places]
    models = [model for _, model in places]
    return model_table(name, identifier, models, served, context, _pricing(identifier))


def _pricing(identifier: str) -> PricingTable:
    """The price in force, which an operator may have set since; else zero."""
    entry = ModelEntry.objects.filter(identifier=identifier).first()
    price = price_in_force(entry, clock.now()) if entry else None
    if price is None:
        return PricingTable(input_per_mtok="0.00", output_per_mtok="0.00", currency="USD")
    return PricingTable(
        input_per_mtok=price_text(price.input_per_mtok),
        output_per_mtok=price_text(price.output_per_mtok),
        currency=price.currency,
    )


def _context(models: Sequence[ModelFindings], given: int | None) -> int | None:
    """The context that every server of a model accepts, in tokens; None when it is not known."""
    if given is not None:
        return given
    reported = [model.context_length.value for model in models]
    known = [tokens for tokens in reported if tokens is not None]
    return min(known) if known else None


def _told(server: ServerFindings, api_key_env: str) -> Iterator[str]:
    """The findings of a probe, in a few lines."""
    if not server.connection.value:
        advice = "" if api_key_env or "key" not in server.connection.words else _KEY_ADVICE
        yield f"{server.base_url}: {server.connection.words}{advice}"
        return
    yield f"{server.base_url}: {server.connection.words}; {server.listing.words}"
    for model in server.models:
        yield f"  {findings.summary(model)}"
        if model.works:
            yield from (f"    {line}" for line in findings.shortcomings(model))


_KEY_ADVICE: Final = f" {KEY_VARIABLE}=... gives one."


def _nothing(
    servers: Sequence[ServerFindings], missing: Sequence[str], lines: Sequence[str]
) -> str:
    listed = sorted({name for server in servers for name in server.listed})
    message = f"No model can be served: {', '.join(missing)}." if missing else "No model works."
    if missing and listed:
        message += f" The servers list: {', '.join(listed[:20])}."
    return "\n".join([message, *lines])
