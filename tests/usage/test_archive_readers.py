"""DuckDB and pandas, unmodified, read an archived month: their sums are those of the ledger."""

from __future__ import annotations

import json
import subprocess
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from core.money import token_cost
from tests.support.builders import traffic
from tests.support.clients.separate_environment import program
from tests.support.ledger.commands import id_of, prune
from usage.models import UsageRow

pytestmark = pytest.mark.django_db(transaction=True)
pytest.importorskip("pyarrow")

MONTH = datetime(2025, 2, 14, 12, tzinfo=UTC)
LARGEST = Decimal("9999999999.99999999")
"""The largest price."""
TOKENS = (
    "backend_reported_input_tokens",
    "backend_reported_output_tokens",
    "delivered_output_tokens",
)

DUCKDB = """
import duckdb, json, sys
[(rows, *sums)] = duckdb.sql(f'''
    SELECT count(*), sum(backend_reported_input_tokens), sum(backend_reported_output_tokens),
        sum(delivered_output_tokens),
        sum(backend_reported_input_tokens * input_price_per_mtok
            + backend_reported_output_tokens * output_price_per_mtok)
    FROM read_parquet('{sys.argv[1]}')
''').fetchall()
print(json.dumps([rows, *map(str, sums)]))
"""
PANDAS = f"""
import json, pandas, sys
rows = pandas.read_parquet(sys.argv[1])
tokens = [rows[name].sum() for name in {TOKENS}]
cost = (
    rows.backend_reported_input_tokens * rows.input_price_per_mtok
    + rows.backend_reported_output_tokens * rows.output_price_per_mtok
).sum()
print(json.dumps([len(rows), *map(str, tokens), str(cost)]))
"""


@pytest.mark.parametrize("reader", [DUCKDB, PANDAS], ids=["duckdb", "pandas"])
def test_a_reader_sums_an_archived_month_exactly(reader: str, tmp_path: Path) -> None:
    organization_id = str(uuid.UUID(int=7))
    for number in range(200):
        traffic.write(
            MONTH.replace(minute=number % 60),
            request_id=id_of(MONTH),
            organization_id=organization_id,
            backend_reported_input_tokens=3 + number * 12_345,
            backend_reported_output_tokens=7 * number,
            generated_output_tokens=7 * number,
            delivered_output_tokens=6 * number,
            input_price_per_mtok=LARGEST if number == 0 else Decimal("0.00000001") * number,
            output_price_per_mtok=Decimal("12.34567891"),
        )
    rows = list(UsageRow.objects.all())
    tokens = [sum(getattr(row, name) for row in rows) for name in TOKENS]
    cost = sum(
        token_cost(row.backend_reported_input_tokens, row.input_price_per_mtok)
        + token_cost(row.backend_reported_output_tokens, row.output_price_per_mtok)
        for row in rows
    )
    prune(tmp_path)
    assert not UsageRow.objects.exists()

    run = subprocess.run(
        [program("python"), "-c", reader, str(tmp_path / "usage-2025-02.parquet")],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )

    found = json.loads(run.stdout)
    assert found[0] == len(rows) == 200
    assert list(map(Decimal, found[1:4])) == list(map(Decimal, tokens))
    assert Decimal(found[4]).scaleb(-6) == cost
