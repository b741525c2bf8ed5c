"""The cost of a row in the ledger: admission, record, journal, database.

    DATABASE_URL=... python -m benchmarks.ledger_path [--rows N] [--rounds N] [--durable]

Concurrent requests are admitted and recorded, over and over, in one event loop; a batch gathers the
waiting rows, so their number is about the size of a batch. Prints per row the processor time of the whole
process and of the event loop's thread, and the waiting time of an admission and a row, medians of the rounds.
With ``--durable`` each round is run without and with ``SVC_DURABLE_ADMISSIONS`` (PostgreSQL). The
database must be migrated; its rows stay, so give it one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from usage.ledger.ledger import Ledger
    from usage.receipts import Receipt

AT_ONCE = (1, 10, 50)


def _admitted(organization_id: str) -> Receipt:
    from core.ids import NIL_UUID, request_id
    from usage.receipts import Receipt

    return Receipt(
        request_id=request_id(),
        organization_id=organization_id,
        api_key_id=str(NIL_UUID),
        model_identifier="acme/bench",
        model_id=str(NIL_UUID),
        model_version_id=str(NIL_UUID),
        outcome="interrupted",
        streamed=True,
        shape="chat",
        http_status=500,
        error_code="internal_error",
        input_price_per_mtok=Decimal("0.15"),
        output_price_per_mtok=Decimal("0.60"),
        price_currency="USD",
    )


@dataclass
class _Taken:
    """Processor and waiting times of a round, in microseconds per row."""

    process: float
    loop: float
    admission: float
    row: float


async def _one(ledger: Ledger, organization_id: str) -> tuple[float, float]:
    """The waiting times of the admission and the row, in seconds."""
    import msgspec

    note = _admitted(organization_id)
    began = time.perf_counter()
    await ledger.admit_durably(note)
    admitted = time.perf_counter()
    await asyncio.sleep(0)
    ended = msgspec.structs.replace(note, outcome="success", http_status=200, error_code=None)
    asked = time.perf_counter()
    await ledger.record(ended)
    return admitted - began, time.perf_counter() - asked


async def _round(ledger: Ledger, rows: int, at_once: int) -> _Taken:
    from core.ids import NIL_UUID

    whole, loop = time.process_time(), time.thread_time()
    waits: list[tuple[float, float]] = []
    for _ in range(rows // at_once):
        waits += await asyncio.gather(*(_one(ledger, str(NIL_UUID)) for _ in range(at_once)))
    return _Taken(
        (time.process_time() - whole) / rows * 1e6,
        (time.thread_time() - loop) / rows * 1e6,
        median(wait for wait, _ in waits) * 1e6,
        median(wait for _, wait in waits) * 1e6,
    )


async def _measure(rows: int, rounds: int, *, durable: bool) -> None:
    from django.conf import settings

    from usage.ledger.ledger import Ledger

    ledgers = {}
    for on in (False, True) if durable else (False,):
        settings.SVC_DURABLE_ADMISSIONS = on
        ledgers[on] = Ledger()
        await ledgers[on].start()
        await _round(ledgers[on], 200, 10)
    print(
        "| At once | Durable admissions | CPU of a row, us | of it the event loop, us "
        "| admission waits, us | row waits, us |\n|---:|---|---:|---:|---:|---:|"
    )
    for at_once in AT_ONCE:
        taken: dict[bool, list[_Taken]] = {on: [] for on in ledgers}
        for _ in range(rounds):
            for on, ledger in ledgers.items():
                settings.SVC_DURABLE_ADMISSIONS = on
                taken[on].append(await _round(ledger, rows, at_once))
        for on, each in taken.items():
            figures = (
                median(getattr(one, name) for one in each)
                for name in ("process", "loop", "admission", "row")
            )
            said = " | ".join(f"{figure:.0f}" for figure in figures)
            print(f"| {at_once} | {'yes' if on else 'no'} | {said} |", flush=True)
    for on, ledger in ledgers.items():
        settings.SVC_DURABLE_ADMISSIONS = on
        await ledger.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--durable", action="store_true")
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
    import django

    django.setup()
    asyncio.run(_measure(options.rows, options.rounds, durable=options.durable))


if __name__ == "__main__":
    main()
