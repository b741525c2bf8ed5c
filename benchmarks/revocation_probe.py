"""Measures one tree for ``benchmarks.revocation``: runs in that tree.

``fill COUNT`` stores keys; ``measure BUSY`` prints a JSON object for each process and revocation; ``serve
BUSY`` is such a process. Uses only functions that every version has.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.db.backends.signals import connection_created  # noqa: E402

from accounts.keys import keys  # noqa: E402
from accounts.keys.keyring import keyring  # noqa: E402
from accounts.models import ApiKey, Organization, Scope  # noqa: E402
from core.errors import InvalidCredential  # noqa: E402
from svc_project.serving import caches  # noqa: E402

ORGANIZATIONS = 500
REVOCATIONS = 5
SETTLING_SECONDS = 4.0
ALL = frozenset(Scope)


def secret(number: int) -> str:
    body = f"svc_live_{number:030d}"
    return body + keys.checksum(body)


def fill(count: int) -> None:
    made = Organization.objects.bulk_create(
        Organization(name=f"organization {number}") for number in range(ORGANIZATIONS)
    )
    ApiKey.objects.bulk_create(
        (
            ApiKey(
                organization=made[number % ORGANIZATIONS],
                scope=Scope.INFERENCE,
                prefix=secret(number)[:15],
                digest=keys.digest_of(secret(number), settings.SVC_KEY_PEPPERS[0]),
                pepper=keys.pepper_fingerprint(settings.SVC_KEY_PEPPERS[0]),
            )
            for number in range(count)
        ),
        batch_size=1000,
    )


def measure(busy: int) -> None:
    """Revoke keys that two processes use, and let them print what they saw."""
    victims = [ApiKey.objects.get(digest=digest(n)) for n in range(REVOCATIONS)]
    ApiKey.objects.filter(revoked_at__isnull=False).update(revoked_at=None)
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "serve", str(busy)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    moments = []
    for victim in victims:
        time.sleep(3)
        keys.revoke(victim)
        moments.append(time.time())
    time.sleep(3)
    for worker in workers:
        seen = json.loads(worker.communicate("stop\n")[0])
        for number, moment in enumerate(moments):
            after = sum(moment < at < moment + 1 for at in seen["statements"])
            before = sum(moment - 1 < at < moment for at in seen["statements"])
            slow = [took for at, took in seen["slow"] if moment - 0.1 < at < moment + 1]
            print(
                json.dumps(
                    {
                        "statements": after - before,
                        "refused_ms": 1000 * (seen["refused"][str(number)] - moment),
                        "slowest_ms": 1000 * max(slow, default=0.0),
                        **seen["own"],
                    }
                )
            )


def digest(number: int) -> str:
    return keys.digest_of(secret(number), settings.SVC_KEY_PEPPERS[0])


async def serve(busy: int) -> None:
    statements: list[float] = []

    def count(execute: Any, *call: Any) -> Any:
        statements.append(time.time())
        return execute(*call)

    def counted(connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(count)

    connection_created.connect(counted)
    headers = [f"Bearer {secret(number)}".encode() for number in range(busy)]
    before, began = memory(), time.perf_counter()
    await caches.start()
    own = {"start_s": time.perf_counter() - began, "memory_mb": memory() - before}
    for header in headers:
        await keyring.authenticate(header, ALL)
    began = time.perf_counter()
    for _ in range(10):
        for header in headers:
            await keyring.authenticate(header, ALL)
    own["authenticate_us"] = 1e6 * (time.perf_counter() - began) / busy / 10
    refused: dict[int, float] = {}
    slow: list[tuple[float, float]] = []

    async def ask(number: int) -> None:
        asked = time.time()
        try:
            await keyring.authenticate(headers[number], ALL)
        except InvalidCredential:
            refused.setdefault(number, time.time())
        else:
            slow.append((asked, time.time() - asked))

    async def use() -> None:
        turn = 0
        while True:
            # Each key once a second, and those that will be revoked all the time.
            chosen = [*range(turn % 100, busy, 100), *range(REVOCATIONS)]
            await asyncio.gather(*(ask(number) for number in chosen if number not in refused))
            turn += 1
            await asyncio.sleep(0.01)

    using = asyncio.create_task(use())
    await asyncio.sleep(SETTLING_SECONDS)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    using.cancel()
    print(json.dumps({"statements": statements, "refused": refused, "slow": slow, "own": own}))
    await caches.close()


def memory() -> float:
    """The resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    verb, number = sys.argv[1], int(sys.argv[2])
    if verb == "serve":
        asyncio.run(serve(number))
    else:
        {"fill": fill, "measure": measure}[verb](number)
