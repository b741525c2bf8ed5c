"""PostgreSQL behind a pooler that gives each transaction another server connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection

from tests.support.faults.case import Case, publish_on
from tests.support.live import Gateway
from tests.support.live_catalog import backend
from tests.support.servers.pgbouncer import running_pgbouncer


@pytest.mark.postgresql
def test_each_request_has_its_row_behind_a_pooler_of_transactions(
    start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    address = urlsplit(os.environ["DATABASE_URL"])
    name = connection.settings_dict["NAME"]
    assert address.username is not None
    with running_pgbouncer(tmp_path, address.port or 5432, address.username) as port:
        gateway = start_gateway(
            DATABASE_URL=f"postgres://{address.username}@127.0.0.1:{port}/{name}",
            SVC_VIEW_STATEMENT_SECONDS="0",
        )
        model = publish_on(gateway, backend(gateway, max_concurrency=32, running_usage="vllm"))
        case = Case(gateway, model, [gateway.simulator.requests])

        for _ in range(3):
            seen = case.ask_many(16)
            assert {each.told for each in seen} == {(200, None)}

        case.check(48)
        assert "the database failed" not in gateway.command.log.read_text()
