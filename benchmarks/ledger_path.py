"""What a row costs on its way through the ledger: admission, record, journal, database.

    DATABASE_URL=... python -m benchmarks.ledger_path [--rows N] [--rounds N]

So many requests at once are admitted and recorded, over and over, in one event loop; batches gather
what is there, so this is about the size of a batch. Prints the processor time of the whole process and
that of the event loop's thread for a row, in microseconds, medians of the rounds. The database must
be migrated; its rows stay, so give it one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from usage.ledger import Ledger
    from usage.receipts import Receipt

AT_ONCE = (1, 10, 50)


def _admitted(organization_id: str) -> Receipt:
    from svc_project.lib.ids import NIL_UUID, request_id
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


async def _one(ledger: Ledger, organization_id: str) -> None:
    import msgspec

    note = _admitted(organization_id)
    ledger.admit(note)
    await asyncio.sleep(0)
    await ledger.record(
        msgspec.structs.replace(note, outcome="success", http_status=200, error_code=None)
    )


async def _round(ledger: Ledger, rows: int, at_once: int) -> tuple[float, float]:
    from svc_project.lib.ids import NIL_UUID

    whole, loop = time.process_time(), time.thread_time()
    for _ in range(rows // at_once):
        await asyncio.gather(*(_one(ledger, str(NIL_UUID)) for _ in range(at_once)))
    return (
        (time.process_time() - whole) / rows * 1e6,
        (time.thread_time() - loop) / rows * 1e6,
    )


async def _measure(rows: int, rounds: int) -> None:
    from usage.ledger import Ledger

    ledger = Ledger()
    await ledger.start()
    await _round(ledger, 200, 10)
    print("| At once | CPU of a row, us | of it the event loop, us |\n|---:|---:|---:|")
    for at_once in AT_ONCE:
        taken = [await _round(ledger, rows, at_once) for _ in range(rounds)]
        whole, loop = (median(each) for each in zip(*taken, strict=True))
        print(f"| {at_once} | {whole:.0f} | {loop:.0f} |", flush=True)
    await ledger.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
    import django

    django.setup()
    asyncio.run(_measure(options.rows, options.rounds))


if __name__ == "__main__":
    main()
