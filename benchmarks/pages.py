"""``python -m benchmarks.pages [--rows N] [--quick]``: measures the console's and the admin's pages.

Needs ``SVC_TEST_DATABASE_URL`` (a postgres:// address); creates a database there and drops it. Prints
a Markdown table of times of whole answers over the socket, one request at a time. The last result is
in docs/measurements/usage.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.tables import table
from benchmarks.usage import Reader, gateway_with_rows

if TYPE_CHECKING:
    from accounts.models import User

WANTED_MS: Final = 300


def session_of(user: User) -> str:
    """The cookie of a new login of ``user``."""
    from django.test import Client

    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


def _cookies(organization_id: str) -> tuple[str, str]:
    """The cookies of a member of the organization, and of a superuser."""
    from accounts.models import Membership, User

    member = User.objects.create_user("member", password="not used here")
    Membership.objects.create(user=member, organization_id=organization_id)
    operator = User.objects.create_superuser("operator", password="not used here")
    return session_of(member), session_of(operator)


def _pages(organization_id: str) -> Iterator[tuple[str, bool]]:
    """The addresses of pages, and whether an operator opens them."""
    from accounts.models import ApiKey
    from usage.models import UsageRow

    today = datetime.now(UTC).date()
    period = f"start={today - timedelta(days=92)}&end={today}"
    key = ApiKey.objects.filter(organization_id=organization_id).first()
    failed = UsageRow.objects.filter(organization_id=organization_id, outcome__contains="disc")
    row = failed.latest("occurred_at")
    assert key is not None
    console = (
        "",
        f"usage?{period}",
        f"usage?{period}&by=model",
        f"usage?{period}&by=key",
        f"usage/totals.csv?{period}&by=key",
        f"usage?{period}&surface=speech",
        "requests",
        "requests?outcome=client_disconnected",
        "requests?model=acme/model-3&least_cost=0.05",
        f"requests/{row.request_id}",
        "models",
        "keys",
        f"keys/{key.pk}",
        "keys/new",
        "playground",
        "voices",
    )
    admin = (
        "",
        "usage/usagerow/",
        "usage/usagerow/?outcome=client_disconnected",
        f"usage/usagerow/?q={row.request_id}",
        f"usage/usagerow/{row.pk}/change/",
        "usage/usagerow/sums/",
        "usage/speechrow/",
        "accounts/organization/",
        "accounts/apikey/",
        f"accounts/apikey/{key.pk}/change/",
        "accounts/auditentry/",
    )
    for page in console:
        yield f"/console/{organization_id}/{page}", False
    for page in admin:
        yield f"/admin/{page}", True


def _milliseconds(reader: Reader, address: str, cookie: str, rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        client = HTTPConnection("127.0.0.1", reader.server.port, timeout=600)
        began = time.perf_counter()
        client.request("GET", address, headers={"cookie": cookie})
        answer = client.getresponse()
        body = answer.read()
        taken.append((time.perf_counter() - began) * 1000)
        client.close()
        if answer.status != 200:
            raise SystemExit(f"{address}: {answer.status} {body[:500].decode()}")
    return taken[1:]  # the first warms up


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the organization")
    parser.add_argument("--quick", action="store_true", help="100 000 rows")
    arguments = parser.parse_args()
    count = 100_000 if arguments.quick else arguments.rows
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker, "
        f"PostgreSQL on the same machine, {datetime.now(UTC):%Y-%m-%d}, "
        f"load average {os.getloadavg()[0]:.1f}."
    )
    lines = []
    with gateway_with_rows(count) as reader:
        member, operator = _cookies(reader.organization_id)
        for address, is_operators in _pages(reader.organization_id):
            cookie = operator if is_operators else member
            taken = _milliseconds(reader, address, cookie, 12)
            met = "met" if max(taken) <= WANTED_MS else "**not met**"
            shown = address.partition("req_")[0]
            lines.append([f"`{shown}`", f"{median(taken):.0f}", f"{max(taken):.0f}", met])
    name = f"Pages at {count:,} rows"
    print(table(name, ["page", "median, ms", "longest of 11", f"{WANTED_MS} ms"], lines))


if __name__ == "__main__":
    main()
