"""``drain_deployment NAME``: send a deployment nothing new, and wait until it is empty."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Q

from accounts.management.arguments import add_json_flag, report_rows
from core.monitoring.worker_stats import EVERY_SECONDS
from inference.models import Backend, Deployment, ModelEntry
from inference.serving.draining import Left, left_on

_LOOK_SECONDS: Final = 0.2
_STEADY_SECONDS: Final = 2 * EVERY_SECONDS
"""A request that was checked before the drain may get its slot after it, so nothing may run for so long."""


class DeploymentFacts(msgspec.Struct):
    """A deployment, and what the workers of this host have there; None where none tells."""

    deployment: str
    model: str
    draining: bool
    running: int | None
    waiting: int | None


class Command(BaseCommand):
    help = (
        "Send a deployment no new requests: those that run there end, and conversations go on "
        "elsewhere. With --undo it serves again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name",
            metavar="NAME",
            help="a backend, for all that it serves, or 'WEIGHTS on BACKEND' for one deployment",
        )
        parser.add_argument("--undo", action="store_true", help="let it serve again")
        parser.add_argument(
            "--wait",
            type=float,
            metavar="SECONDS",
            help="wait until nothing runs there in any worker of this host; the status is 1 if "
            "something still does after so long",
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        undo, wait = options["undo"], options["wait"]
        if undo and wait is not None:
            raise CommandError("--wait goes with a drain. Leave it out of --undo.")
        rows = _named(options["name"])
        _set(rows, draining=not undo)
        if not undo:
            for line in _unserved(rows):
                self.stderr.write(line)
        served = _served(rows)
        is_empty = wait is None or _is_emptied(served, wait)
        found = [(row, left_on(row)) for row in rows]
        report_rows(self, options["json"], [_facts(row, left) for row, left in found])
        if not is_empty:
            raise CommandError(_still(wait, [left for row, left in found if row in served]))


def _named(name: str) -> list[Deployment]:
    """The enabled deployments that ``name`` means. Raises ``CommandError``."""
    weights, _, backend = name.rpartition(" on ")
    rows = Deployment.objects.filter(
        Q(backend__name=name) | Q(weights__name=weights, backend__name=backend), enabled=True
    )
    if found := list(rows.select_related("weights", "backend").order_by("weights__name")):
        return found
    known = ", ".join(Backend.objects.values_list("name", flat=True)) or "none"
    raise CommandError(f"NAME: no deployment that is on is called {name!r}. Backends: {known}.")


def _set(rows: Sequence[Deployment], *, draining: bool) -> None:
    """Mark ``rows``; one that is so already is left alone, with its history."""
    with transaction.atomic():
        for row in rows:
            if row.draining is not draining:
                row.draining = draining
                row.save()


def _served(rows: Sequence[Deployment]) -> list[Deployment]:
    """Those of ``rows`` that a published model uses: workers know no others, and send nothing there."""
    published = ModelEntry.objects.filter(published_at__isnull=False).values_list("weights_id")
    used = {weights for (weights,) in published}
    return [row for row in rows if row.weights_id in used]


def _unserved(rows: Sequence[Deployment]) -> list[str]:
    """A line for each published model that nothing serves now."""
    serving = Deployment.objects.filter(enabled=True, draining=False, backend__enabled=True)
    entries = ModelEntry.objects.filter(
        weights__in={row.weights_id for row in rows}, published_at__isnull=False
    ).exclude(weights__in=serving.values("weights"))
    return [f"{entry} has no other deployment: its requests fail." for entry in entries]


def _is_emptied(rows: Sequence[Deployment], seconds: float) -> bool:
    """Wait until nothing runs on any of ``rows``, for at most ``seconds``."""
    deadline = time.monotonic() + seconds
    empty_since: float | None = None
    while (now := time.monotonic()) < deadline:
        if not all(left_on(row).is_empty for row in rows):
            empty_since = None
        elif now - (empty_since := empty_since or now) >= _STEADY_SECONDS:
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _facts(row: Deployment, left: Left) -> DeploymentFacts:
    return DeploymentFacts(
        deployment=str(row),
        model=row.model,
        draining=row.draining,
        running=left.running if left.workers else None,
        waiting=left.waiting if left.workers else None,
    )


def _still(seconds: float, left: Sequence[Left]) -> str:
    if not all(each.workers for each in left):
        return "No gateway of this host tells what runs. Give this command its SVC_DATA_DIR."
    if any(each.unaware for each in left):
        return "A worker has not read yet that it drains, or its backend is switched off."
    running = sum(each.running for each in left)
    return f"After {seconds:g} s it is not empty ({running} running). It drains on; wait again."
