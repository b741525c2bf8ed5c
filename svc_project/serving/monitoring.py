"""The probes and metrics: ``/livez``, ``/readyz``, ``/health`` and ``/metrics``.

``/health`` is ``/readyz`` by the name that model servers use: clients written for them, load
generators above all, request it first. They are on the inference surface beside the contract, need
no key and read no database, and are answered while the server drains.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from django.conf import settings
from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from accounts.changes import CATALOG, KEYS, PRONUNCIATIONS, VOICES, key_watcher, watcher
from core.asgi.drain import drain
from core.backends.addresses import is_this_machine
from core.database.clocks import LARGEST_DIFFERENCE
from core.errors import (
    ApiError,
    InvalidCredential,
    MethodNotAllowed,
    NotFound,
    error_body,
)
from core.ids import request_id
from core.monitoring import metrics, observation, process
from core.monitoring.metrics import Family, Sample, gauge, total
from core.monitoring.problems import Problem
from core.monitoring.worker_stats import worker_stats
from core.sharing import places
from inference.catalog.catalog import catalog
from inference.serving import monitoring
from speech.serving import monitoring as speech_present
from svc_project.gate.caller_threads import known, strangers
from svc_project.serving.http_protocol import BoundedProtocol
from svc_project.serving.schema import schema
from svc_project.surfaces import Application, Receive, Send, Surface, host_of
from usage.ledger.ledger import ledger
from usage.refusals.recorder import recorder

METRICS_STATS: Final = "metrics"
_JSON: Final = b"application/json"
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


async def livez(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """200 as long as the event loop turns."""
    await _answer(scope, send, 200, _JSON, b'{"status":"alive"}')


async def readyz(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """200, or 503 with the reasons why this process should get no requests."""
    reasons = unready_reasons()
    state: dict[str, Any] = {"status": "not_ready" if reasons else "ready", "reasons": reasons}
    if notes := readiness_notes():
        state["notes"] = notes
    body = msgspec.json.encode(state)
    await _answer(scope, send, 503 if reasons else 200, _JSON, body)


async def read_metrics(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The metrics of all workers of this host in Prometheus' text format."""
    if (refusal := _refusal(scope)) is not None:
        await _refuse(scope, send, refusal)
        return
    body = generate_latest(_Workers())
    await _answer(scope, send, 200, CONTENT_TYPE_PLAIN_0_0_4.encode(), body)


PROBES: Final[dict[str, Application]] = {
    "/livez": livez,
    "/readyz": readyz,
    "/health": readyz,
    "/metrics": read_metrics,
}


def unready_reasons() -> list[Problem]:
    """Why this process should get no requests; empty when it should."""
    found = {
        Problem.DRAINING: drain.stopping,
        Problem.CATALOG_NOT_LOADED: not catalog.is_loaded,
        Problem.SCHEMA_OLDER_THAN_CODE: schema.is_older,
        Problem.NO_DURABLE_PLACE_FOR_USAGE_ROWS: not ledger.accepts_rows(),
    }
    return [reason for reason, applies in found.items() if applies]


def readiness_notes() -> list[Problem]:
    """Problems that need attention, although this process can get requests."""
    found = {
        Problem.DATABASE_AWAY: not ledger.state.database_answers,
        Problem.JOURNAL_TAKES_NOTHING: not ledger.state.journal_works,
        Problem.ROWS_WAIT_IN_MEMORY: ledger.state.rows_in_memory > 0,
        Problem.ROWS_REFUSED_BY_THE_DATABASE: ledger.state.refused_waiting > 0,
        Problem.JOURNAL_FILES_UNREADABLE: bool(ledger.state.unreadable_files),
        Problem.CLOCKS_APART: abs(ledger.state.clock_difference or 0.0) > LARGEST_DIFFERENCE,
    }
    return [note for note, applies in found.items() if applies]


def problems() -> list[Problem]:
    """All problems of this process."""
    return [*unready_reasons(), *readiness_notes()]


def own_families() -> list[Family]:
    """All metrics of this process."""
    return [
        *process.families(),
        *_server_families(),
        *_poll_families(),
        *_ledger_families(),
        *recorder.families(),
        *monitoring.families(),
        *speech_present.families(),
        *(family for each in observation.observers for family in each.families()),
    ]


def _server_families() -> Iterator[Family]:
    yield metrics.requests.family()
    yield gauge(
        "svc_requests_in_flight",
        "Admitted requests that are being answered.",
        places.in_flight.held,
    )
    yield gauge("svc_connections", "Open connections.", len(BoundedProtocol.open_connections))
    yield gauge(
        "svc_body_bytes", "Bytes of request bodies held in memory.", places.held_bodies.held
    )
    yield gauge(
        "svc_pages_in_flight",
        "Requests that Django answers.",
        known.places.inflight + strangers.places.inflight,
    )
    yield gauge(
        "svc_pages_waiting",
        "Requests that wait for a thread of Django's.",
        known.places.waiting + strangers.places.waiting,
    )
    yield from _capacity_families()
    yield gauge("svc_ready", "1 while /readyz is 200.", not unready_reasons())


def _poll_families() -> Iterator[Family]:
    """The ages of what this process knows of keys, catalog, voices and pronunciations."""
    ages = {
        subject: of.age(subject)
        for of, subjects in ((key_watcher, (KEYS,)), (watcher, (CATALOG, VOICES, PRONUNCIATIONS)))
        for subject in subjects
    }
    yield Family(
        "svc_poll_age_seconds",
        "gauge",
        "Since the last look at the database that found all changes.",
        [Sample("", {"subject": subject}, age) for subject, age in ages.items()],
    )


def _capacity_families() -> Iterator[Family]:
    def samples(of: Callable[[places.Share], float]) -> list[Sample]:
        return [Sample("", {"kind": kind}, of(each)) for kind, each in places.BY_KIND.items()]

    yield Family(
        "svc_capacity_used", "gauge", "Held now, by kind.", samples(lambda each: each.held)
    )
    yield Family(
        "svc_capacity", "gauge", "The most that is held at once.", samples(lambda each: each.most)
    )
    refusals = [
        Sample("_total", {"kind": kind, "reason": reason}, count)
        for kind, each in places.BY_KIND.items()
        for reason, count in (("full", each.refused_full), ("share", each.refused_share))
    ]
    yield Family(
        "svc_capacity_refusals",
        "counter",
        "Refusals because everything was taken (full), or one organization's part (share).",
        refusals,
    )


def _ledger_families() -> Iterator[Family]:
    state = ledger.state
    yield total("svc_ledger_rows", "Usage rows brought into the database.", state.rows_written)
    yield gauge(
        "svc_ledger_rows_waiting",
        "Answers held back until their row is durable.",
        state.rows_waiting,
    )
    yield gauge("svc_ledger_journal_bytes", "Bytes of the local journal.", state.journal_bytes)
    yield gauge(
        "svc_ledger_database_up",
        "1 while rows go to the database, 0 while they go to the journal.",
        state.database_answers,
    )
    yield gauge("svc_ledger_journal_up", "1 while the journal takes records.", state.journal_works)
    yield gauge(
        "svc_ledger_rows_owed",
        "Rows that the database does not have yet.",
        state.rows_owed,
    )
    yield gauge("svc_ledger_rows_kept", "Rows that are in memory alone.", state.rows_in_memory)
    yield total("svc_ledger_rows_refused", "Rows that the database refused.", state.rows_refused)
    yield gauge(
        "svc_ledger_refused_rows",
        "Refused rows that wait in files.",
        state.refused_waiting,
    )
    yield gauge(
        "svc_ledger_unreadable_files",
        "Files of the journal's directory that cannot be adopted.",
        len(state.unreadable_files),
    )
    if state.clock_difference is not None:
        yield gauge(
            "svc_ledger_clock_difference_seconds",
            "How far this host's clock is ahead of the database's.",
            state.clock_difference,
        )


class _Workers(Collector):
    """Every worker's families under one name each, told apart by the label ``worker``."""

    def collect(self) -> list[Metric]:
        merged: dict[str, Metric] = {}
        # Without those of a generation that ends: a counter that goes back is a restart to its reader.
        of_children = worker_stats.read(METRICS_STATS, list[Family], own_generation=True)
        for worker, families in [*of_children, ("parent", process.parent_families())]:
            for family in families:
                metric = merged.get(family.name)
                if metric is None:
                    metric = merged[family.name] = Metric(family.name, family.help, family.kind)
                for sample in family.samples:
                    labels = {**sample.labels, "worker": str(worker)}
                    metric.add_sample(family.name + sample.suffix, labels, sample.value)
        return list(merged.values())


def _refusal(scope: dict[str, Any]) -> ApiError | None:
    """Refuse readers of the metrics without ``SVC_METRICS_TOKEN``; if unset, all but this host.

    A request from a proxy on this host comes from elsewhere, whatever its address, and one for
    another host name is from a page in a local browser (DNS rebinding).
    """
    given = b""
    forwarded = settings.SVC_PROXIES > 0
    for name, value in scope["headers"]:
        if name == b"authorization":
            given = value
        forwarded = forwarded or name in _FORWARDED
    if settings.SVC_METRICS_TOKEN:
        expected = f"Bearer {settings.SVC_METRICS_TOKEN}".encode()
        return None if hmac.compare_digest(given, expected) else InvalidCredential()
    client = scope.get("client")
    is_here = client is not None and ipaddress.ip_address(client[0]).is_loopback
    if is_here and not forwarded and is_this_machine(host_of(scope)):
        return None
    return NotFound()


async def _answer(
    scope: dict[str, Any], send: Send, status: int, content_type: bytes, body: bytes
) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        await _refuse(scope, send, MethodNotAllowed("GET, HEAD"))
        return
    headers = [(b"content-type", content_type), (b"cache-control", b"no-store")]
    await _send(send, status, headers, body)


async def _refuse(scope: dict[str, Any], send: Send, error: ApiError) -> None:
    headers = [(name.encode(), value.encode()) for name, value in error.headers.items()]
    refused_id = request_id()
    observation.refused(refused_id, scope, Surface.INFERENCE, "probes", error)
    fields = [(b"content-type", _JSON), *headers]
    await _send(send, error.status, fields, error_body(error), refused_id)


async def _send(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes, own_id: str = ""
) -> None:
    fixed = [
        (b"x-request-id", (own_id or request_id()).encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
