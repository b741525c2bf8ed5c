"""System checks for settings that are fine in development and weak in production.

``manage.py check --deploy`` runs them, with Django's own; those that query the database need
``--database default`` as well. docs/operate/production.md shows settings that pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from svc_project.lib.backends.addresses import is_this_machine

SHORTEST_SECRET = 32
"""Characters; a shorter secret is probably a word and not random."""

TEMPORARY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "overlay", "aufs"})
"""File systems in memory, or of a container's own layer."""

LARGEST_CLOCK_DIFFERENCE = timedelta(seconds=1)


@register(Tags.security)
def debug_on_public_hosts(**_: Any) -> list[CheckMessage]:
    """Refuse to start: debug pages show settings and code to any client that causes an error."""
    if not settings.DEBUG or not _open_hosts():
        return []
    return [
        Error(
            f"DEBUG is on, and hosts besides this machine are served: {', '.join(_open_hosts())}.",
            hint="Set DEBUG=false, or leave only localhost in ALLOWED_HOSTS.",
            id="svc.E001",
        )
    ]


@register()
def durable_admissions_on_a_file(**_: Any) -> list[CheckMessage]:
    """Refuse to start: the setting is for hosts that lose their disk, and the database is on it."""
    if not settings.SVC_DURABLE_ADMISSIONS or connection.vendor == "postgresql":
        return []
    return [
        Error(
            "SVC_DURABLE_ADMISSIONS is on, and the database is a file of this host: it would be "
            "lost together with the journal.",
            hint="Use PostgreSQL on another host (DATABASE_URL), or switch the setting off.",
            id="svc.E002",
        )
    ]


@register(Tags.security, deploy=True)
def any_host(**_: Any) -> list[CheckMessage]:
    """Warn: with ``*`` a forged Host header reaches the pages and their links."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "ALLOWED_HOSTS takes every host.",
            hint="List the names under which clients and people reach this gateway.",
            id="svc.W001",
        )
    ]


@register(Tags.security, deploy=True)
def generated_secrets(**_: Any) -> list[CheckMessage]:
    """Warn: secrets generated on first start are kept beside the data, on this host only."""
    return [
        Warning(
            f"{_setting(name)} was not given, so one was made and kept in {settings.SVC_DATA_DIR}.",
            hint="Give the same value to every host: without it no other host, and no restored "
            "backup, can use what this one has signed, digested or encrypted.",
            id="svc.W002",
        )
        for name in settings.SVC_MADE_UP_SECRETS
    ]


@register(Tags.security, deploy=True)
def short_secrets(**_: Any) -> list[CheckMessage]:
    given = {
        "SECRET_KEY": [settings.SECRET_KEY],
        "SVC_KEY_PEPPERS": settings.SVC_KEY_PEPPERS,
        "SVC_CAPTURE_KEYS": settings.SVC_CAPTURE_KEYS,
        "SVC_CLONE_KEYS": settings.SVC_CLONE_KEYS,
    }
    return [
        Warning(
            f"{name} holds a secret of fewer than {SHORTEST_SECRET} characters.",
            hint="Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'",
            id="svc.W003",
        )
        for name, secrets in given.items()
        if any(len(secret) < SHORTEST_SECRET for secret in secrets)
    ]


@register(Tags.security, deploy=True)
def without_tls(**_: Any) -> list[CheckMessage]:
    if settings.SVC_HTTPS_ONLY:
        return []
    return [
        Warning(
            "SVC_HTTPS_ONLY is off: keys, passwords and session cookies may travel in the clear.",
            hint="Put a proxy that ends TLS in front and set SVC_HTTPS_ONLY=true.",
            id="svc.W004",
        )
    ]


@register(Tags.security, deploy=True)
def metrics_closed(**_: Any) -> list[CheckMessage]:
    """Warn: without a token only this host can read the metrics, and no client behind a proxy."""
    if settings.SVC_METRICS_TOKEN:
        return []
    return [
        Warning(
            "SVC_METRICS_TOKEN is not set: /metrics answers this host only"
            + (", and nobody while SVC_PROXIES is above 0." if settings.SVC_PROXIES else "."),
            hint="Set a token, and give it to the server that collects the metrics.",
            id="svc.W009",
        )
    ]


@register(Tags.security, deploy=True)
def temporary_disk(**_: Any) -> list[CheckMessage]:
    """Warn: the journal holds rows that the database does not have, so its disk must last."""
    kind = file_system(settings.SVC_DATA_DIR, Path("/proc/self/mountinfo"))
    if kind not in TEMPORARY_FILE_SYSTEMS:
        return []
    return [
        Warning(
            f"SVC_DATA_DIR ({settings.SVC_DATA_DIR}) is on {kind}, which is lost with this machine "
            "or container.",
            hint="Put it on a disk that outlives both: the ledger's journal alone holds the rows "
            "of a database outage, and the requests that ran when a process was killed.",
            id="svc.W005",
        )
    ]


@register(Tags.database, deploy=True)
def unsafe_commits(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Warn: a commit that is answered before it is on disk is lost when the database crashes."""
    if "default" not in (databases or ()) or connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('synchronous_commit'), current_setting('fsync')")
        commit, fsync = cursor.fetchone()
    found: list[CheckMessage] = []
    if fsync == "off":
        found.append(
            Warning(
                "The database has fsync = off: a crash of its machine destroys it.",
                hint="Set it to on.",
                id="svc.W006",
            )
        )
    if commit == "off":
        holds = settings.SVC_LEDGER_SYNCHRONOUS_COMMIT
        found.append(
            Warning(
                "The database has synchronous_commit = off: a crash loses what was answered last"
                + (", the ledger's rows excepted." if holds else ", the ledger's rows too."),
                hint="Set it to on for the gateway's role"
                + ("." if holds else ", or SVC_LEDGER_SYNCHRONOUS_COMMIT=true."),
                id="svc.W007",
            )
        )
    return found


@register(Tags.database, deploy=True)
def clocks_apart(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Warn: the database's clock stamps rows; the host's decides limits, days and prices."""
    if "default" not in (databases or ()) or connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        began = time.perf_counter()
        cursor.execute("SELECT clock_timestamp()")
        theirs: datetime = cursor.fetchone()[0]
        on_the_way = timedelta(seconds=(time.perf_counter() - began) / 2)
    apart = abs(datetime.now(UTC) - on_the_way - theirs)
    if apart <= LARGEST_CLOCK_DIFFERENCE + on_the_way:
        return []
    return [
        Warning(
            f"The clocks of this host and of the database are {apart.total_seconds():.1f} s apart.",
            hint="Let both follow a time server (chrony, systemd-timesyncd).",
            id="svc.W008",
        )
    ]


def file_system(path: Path, mounts: Path) -> str | None:
    """The kind of file system that ``path`` is on, by a ``mountinfo`` file (proc(5)), or None."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    path = path.resolve()
    found, kind = -1, None
    for line in lines:
        about, _, rest = line.partition(" - ")
        point = Path(about.split(" ")[4].replace("\\040", " "))
        # Of two mounts at one place the later one is visible.
        if (path == point or point in path.parents) and len(point.parts) >= found:
            found, kind = len(point.parts), rest.split(" ")[0]
    return kind


def _open_hosts() -> list[str]:
    """The allowed hosts that are not this machine."""
    return [host for host in settings.ALLOWED_HOSTS if not is_this_machine(host)]


def _setting(name: str) -> str:
    """The setting that a generated secret replaces."""
    return {
        "SVC_KEY_PEPPER": "SVC_KEY_PEPPERS",
        "SVC_CAPTURE_KEY": "SVC_CAPTURE_KEYS",
        "SVC_CLONE_KEY": "SVC_CLONE_KEYS",
    }.get(name, name)
