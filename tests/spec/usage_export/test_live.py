"""The export of a real server over real sockets: streaming, memory, cuts, rows that arrive."""

from __future__ import annotations

import csv
import http.client
import io
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.builders.export_rows import COLUMNS, expected, expected_csv, make, save
from tests.support.live import Gateway
from tests.support.readers import signed_in
from tests.support.until import until
from usage.models import UsageRow

PERIOD = {"start": "2026-06-01", "end": "2026-09-01"}
FIRST = datetime(2026, 6, 1, tzinfo=UTC)
MANY, VERY_MANY = 50_000, 200_000
_TABLE = UsageRow._meta.db_table


class Reader:
    """A client with a read key of the gateway's organization, or of another one."""

    def __init__(self, gateway: Gateway, organization: Organization | None = None) -> None:
        self.url = f"{gateway.base_url}/usage/export"
        self.path = "/v1/usage/export"
        self.port = gateway.port
        self.organization = organization or gateway.organization
        self.headers = {"authorization": f"Bearer {mint(self.organization, Scope.READ).secret}"}

    def ask(self, **parameters: Any) -> httpx2.Response:
        return httpx2.get(self.url, params=parameters, headers=self.headers, timeout=60)

    def get(self, **parameters: Any) -> httpx2.Response:
        answer = self.ask(**parameters)
        assert answer.status_code == 200, answer.text
        return answer

    def csv(self, **parameters: Any) -> list[dict[str, str]]:
        text = self.get(format="csv", **parameters).text
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))

    @contextmanager
    def download(
        self, version: str = "HTTP/1.1", *, may_be_refused: bool = False
    ) -> Iterator[http.client.HTTPResponse]:
        """The CSV of the whole period, of which only the headers were read."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client._http_vsn_str = version  # type: ignore[attr-defined]  # its only way
        query = "&".join(f"{name}={value}" for name, value in PERIOD.items())
        client.request("GET", f"{self.path}?format=csv&{query}", headers=self.headers)
        with closing(client), client.getresponse() as answer:
            assert may_be_refused or answer.status == 200
            yield answer


@pytest.fixture
def reader(gateway: Gateway) -> Reader:
    return Reader(gateway)


def multiply(row: UsageRow, count: int) -> None:
    """Add ``count`` copies of a saved row, each a second later than the one before."""
    columns = [field.attname for field in UsageRow._meta.local_fields]
    if connection.vendor == "postgresql":
        numbers = f"generate_series(1, {count}) AS number"
        later = "occurred_at + number * interval '1 second'"
    else:
        numbers = (
            "(WITH RECURSIVE numbers(number) AS (VALUES (1) UNION ALL SELECT number + 1"
            f" FROM numbers WHERE number < {count}) SELECT number FROM numbers)"
        )
        later = "datetime(occurred_at, '+' || number || ' seconds')"
    changed = {
        "request_id": f"'req_{uuid.uuid4().hex[:12]}' || (1000000 + number)",
        "occurred_at": later,
    }
    selected = ", ".join(changed.get(name, name) for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_TABLE} ({', '.join(columns)}) "
            f"SELECT {selected} FROM {_TABLE}, {numbers} WHERE request_id = %s",
            [row.request_id],
        )
        # Autovacuum would do this within a minute.
        cursor.execute("ANALYZE")


def give(organization: Organization, count: int) -> int:
    (row,) = save([make(organization.pk, FIRST)])
    multiply(row, count - 1)
    return count


def another(gateway: Gateway, count: int) -> Reader:
    """A reader of another organization, which has ``count`` rows."""
    organization = Organization.objects.create(name=f"other {uuid.uuid4()}")
    give(organization, count)
    return Reader(gateway, organization)


@pytest.fixture
def many(gateway: Gateway) -> Iterator[int]:
    """The number of the organization's rows: too many for the buffers between database and client."""
    yield give(gateway.organization, MANY)
    # Other tests read every table.
    UsageRow.objects.filter(occurred_at__lt=datetime(2026, 10, 1, tzinfo=UTC)).delete()


def resident_bytes(gateway: Gateway) -> int:
    for line in Path(f"/proc/{gateway.command.worker}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise LookupError("VmRSS")


def copying() -> list[int]:
    """The PostgreSQL processes that serve a download of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'COPY (SELECT%%' AND state = 'active'",
            [],
        )
        return [pid for (pid,) in cursor.fetchall()]


def connections_of_the_gateway() -> list[tuple[str, str]]:
    """State and last statement of every connection to this database but the asking one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, query FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchall()  # type: ignore[no-any-return]  # rows of two texts


def test_mixed_traffic_is_the_same_in_json_in_csv_and_in_the_ledger(
    gateway: Gateway, reader: Reader
) -> None:
    for number in range(4):
        gateway.chat(f"say: {number}", model=["running", "mini"][number % 2])
        gateway.chat(f"say: {number}", stream=True)
    assert len(gateway.rows_when(8)) == 8

    # The independent counts of sampled requests are set shortly after the row.
    until(lambda: reader.get().json()["rows"] == list(map(expected, gateway.rows())))
    until(lambda: reader.csv() == list(map(expected_csv, gateway.rows())))


def test_the_csv_is_a_streamed_attachment(gateway: Gateway, reader: Reader) -> None:
    Organization.objects.filter(pk=gateway.organization.pk).update(name=f"Ärzte {uuid.uuid4()}")
    gateway.organization.refresh_from_db()

    answer = reader.get(format="csv", limit="nonsense", **PERIOD)

    slug = gateway.organization.name.replace("Ä", "a").replace(" ", "-")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="usage-{slug}-2026-06-01-2026-09-01.csv"'
    )
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.text == ",".join(COLUMNS) + "\n"


def test_head_gives_the_headers_of_both_formats_without_a_body(reader: Reader) -> None:
    for wanted, kind in (("json", "application/json"), ("csv", "text/csv; charset=utf-8")):
        answer = httpx2.head(f"{reader.url}?format={wanted}", headers=reader.headers, timeout=60)

        assert answer.status_code == 200
        assert answer.headers["content-type"] == kind
        assert answer.content == b""


@pytest.mark.long
def test_the_whole_period_comes_in_one_csv_in_constant_memory(
    gateway: Gateway, reader: Reader
) -> None:
    count = give(gateway.organization, VERY_MANY)
    reader.csv(start="2020-01-01", end="2020-01-02")
    before = most = resident_bytes(gateway)
    lines = size = 0
    seen: set[bytes] = set()
    with httpx2.stream(
        "GET", reader.url, params={"format": "csv", **PERIOD}, headers=reader.headers, timeout=60
    ) as answer:
        rest = b""
        for piece in answer.iter_bytes():
            *whole, rest = (rest + piece).split(b"\n")
            lines += len(whole)
            size += len(piece)
            seen.update(line.split(b",", 2)[1] for line in whole)
            most = max(most, resident_bytes(gateway))

    assert rest == b""
    assert lines == count + 1
    assert len(seen) == count + 1
    assert most - before < 50_000_000 < size


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("version", "broken"),
    [("HTTP/1.1", http.client.IncompleteRead), ("HTTP/1.0", ConnectionResetError)],
)
def test_a_download_that_the_database_interrupts_is_seen_to_be_cut(
    reader: Reader, many: int, version: str, broken: type[Exception]
) -> None:
    with reader.download(version) as answer:
        answer.read(100_000)
        (pid,) = until(copying)

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

        with pytest.raises(broken):
            answer.read()


@pytest.mark.postgresql
def test_a_disconnect_frees_the_database_connection(reader: Reader, many: int) -> None:
    with reader.download() as answer:
        answer.read(100_000)
        assert until(copying)

    until(lambda: not copying())


def test_one_organization_at_its_bound_leaves_downloads_to_others(
    gateway: Gateway, reader: Reader, many: int
) -> None:
    other = another(gateway, 5)
    with ExitStack() as downloads:
        for _ in range(settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION):
            downloads.enter_context(reader.download())
        refused = reader.ask(format="csv", **PERIOD)

        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert "Try again when one of them has ended" in refused.json()["error"]["message"]
        assert reader.ask(**PERIOD).status_code == 200
        for _ in range(3):
            assert len(other.csv(**PERIOD)) == 5
            assert len(other.ask(**PERIOD).json()["rows"]) == 5

    until(lambda: reader.ask(format="csv").status_code == 200)


def test_all_downloads_together_are_bounded_also_when_they_come_at_once(
    gateway: Gateway, reader: Reader, many: int
) -> None:
    readers = [reader, another(gateway, MANY), another(gateway, MANY)]
    places = settings.SVC_EXPORT_DOWNLOADS
    own = settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION
    assert own < places < 3 * own

    with ExitStack() as downloads:

        def begin(reader: Reader) -> tuple[int, str | None]:
            answer = downloads.enter_context(reader.download(may_be_refused=True))
            return answer.status, answer.headers["retry-after"]

        with ThreadPoolExecutor(24) as at_once:
            answers = list(at_once.map(begin, readers * 8))
        began = [status for status, _ in answers if status == 200]
        assert len(began) == places
        assert 503 in {status for status, _ in answers} <= {200, 429, 503}
        assert all(int(after or 0) > 0 for status, after in answers if status != 200)

    until(lambda: reader.ask(format="csv").status_code == 200)


@pytest.mark.postgresql
def test_a_download_holds_one_database_connection(
    gateway: Gateway, reader: Reader, many: int
) -> None:
    reader.ask(limit=1)
    before = len(connections_of_the_gateway())

    with ExitStack() as downloads:
        for _ in range(settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION):
            downloads.enter_context(reader.download()).read(1000)
        until(lambda: len(copying()) == settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION)
        until(lambda: len(connections_of_the_gateway()) <= before + len(copying()))


def test_a_browser_gets_a_page_when_all_downloads_are_in_use(
    gateway: Gateway, reader: Reader, many: int
) -> None:
    browser = signed_in(gateway.organization)
    name = settings.SESSION_COOKIE_NAME
    cookies = {"cookie": f"{name}={browser.cookies[name].value}"}
    with ExitStack() as downloads:
        for _ in range(settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION):
            downloads.enter_context(reader.download())
        page, script = (
            httpx2.get(
                reader.url,
                params={"format": "csv", **PERIOD},
                headers={**cookies, "accept": accept},
                timeout=60,
            )
            for accept in ("text/html,*/*;q=0.8", "*/*")
        )

    assert page.status_code == script.status_code == 429
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert int(page.headers["retry-after"]) > 0
    assert "<h1>This download has to wait</h1>" in page.text
    assert "Try again when one of them has ended" in page.text
    assert script.json()["error"]["code"] == "rate_limit_exceeded"


def test_a_reader_who_keeps_the_cursor_misses_nothing_while_traffic_runs(
    gateway: Gateway, reader: Reader
) -> None:
    over = threading.Event()

    def chat(worker: int) -> None:
        for number in range(20):
            assert gateway.chat(f"say: {worker} {number}").status_code == 200

    def traffic() -> None:
        with ThreadPoolExecutor(4) as workers:
            list(workers.map(chat, range(4)))
        over.set()

    running = threading.Thread(target=traffic)
    running.start()
    taken: list[str] = []
    cursor = ""
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    while datetime.now(UTC) < deadline:
        last = over.is_set()
        body = reader.get(limit=11, cursor=cursor).json()
        if body["next_cursor"] is not None:
            taken += [row["request_id"] for row in body["rows"]]
            cursor = body["next_cursor"]
        elif last:
            taken += [row["request_id"] for row in body["rows"]]
            break
    running.join()

    assert taken == [row.request_id for row in gateway.rows_when(80)]
    assert len(taken) == 80


@pytest.mark.postgresql
def test_busy_readers_leave_no_database_connections_behind(reader: Reader) -> None:
    before = len(connections_of_the_gateway())
    with ThreadPoolExecutor(8) as readers:
        statuses = set(readers.map(lambda _: reader.get(limit=1).status_code, range(60)))

    assert statuses == {200}
    # The threads of docs/operate/what-runs.md, of which other tests may have used some before.
    assert len(connections_of_the_gateway()) - before < 30
