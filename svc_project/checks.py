"""System checks for settings that are fine in development and weak in production.

``manage.py check --deploy`` runs them, with Django's own; those that query the database need
``--database default`` as well. docs/operate/production.md shows settings that pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection
from django.http.request import validate_host

from core.backends.addresses import is_this_machine
from core.database.clocks import LARGEST_DIFFERENCE, clock_difference
from svc_project.operator_settings import REMOVED
from usage.ledger.journal.segments import try_disk

STARTING = "starting"
"""The tag of the checks that ``serve`` runs before it listens."""

SHORTEST_SECRET = 32
"""Characters; a shorter secret is probably a word and not random."""

FEWEST_CHARACTERS = 8
"""Different characters; of 32 random hex digits one in 30 million has fewer."""
_PLACEHOLDER = re.compile(
    r"change.?me|insecure|example|placeholder|replace.?(me|this)|password|secret|your.?(own|key)",
    re.IGNORECASE,
)

_TRIED_BYTES = 65_536

TEMPORARY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "overlay", "aufs"})
"""File systems in memory, or of a container's own layer."""


@register(STARTING, Tags.security)
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


@register(STARTING)
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


@register(STARTING)
def removed_settings(**_: Any) -> list[CheckMessage]:
    """Warn: a variable of an earlier release has no effect, and its value may be expected to apply."""
    given = [name for name in sorted(REMOVED) if os.environ.keys() & {name, f"{name}_FILE"}]
    return [
        Warning(
            f"{name} is no setting any more and has no effect. {REMOVED[name]}",
            hint="Take it out of the environment.",
            id="svc.W012",
        )
        for name in given
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
def weak_secrets(**_: Any) -> list[CheckMessage]:
    """Warn: a secret that can be guessed protects nothing."""
    given = {
        "SECRET_KEY": [settings.SECRET_KEY],
        "SVC_KEY_PEPPERS": settings.SVC_KEY_PEPPERS,
        "SVC_CAPTURE_KEYS": settings.SVC_CAPTURE_KEYS,
        "SVC_CLONE_KEYS": settings.SVC_CLONE_KEYS,
        "SVC_METRICS_TOKEN": [settings.SVC_METRICS_TOKEN] if settings.SVC_METRICS_TOKEN else [],
    }
    found = {
        name: next(filter(None, map(_weakness, secrets)), None) for name, secrets in given.items()
    }
    return [
        Warning(
            f"{name} holds a secret {weakness}.",
            hint="Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'",
            id="svc.W003",
        )
        for name, weakness in found.items()
        if weakness
    ]


def _weakness(secret: str) -> str | None:
    if len(secret) < SHORTEST_SECRET:
        return f"of fewer than {SHORTEST_SECRET} characters"
    if _PLACEHOLDER.search(secret):
        return "that looks like the placeholder of an example"
    if len(set(secret)) < FEWEST_CHARACTERS:
        return f"of fewer than {FEWEST_CHARACTERS} different characters"
    return None


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
def uncounted_proxy(**_: Any) -> list[CheckMessage]:
    """Warn: TLS ends at a proxy, so every client has the address of that proxy."""
    if settings.SVC_PROXIES or not settings.SVC_HTTPS_ONLY:
        return []
    return [
        Warning(
            "SVC_HTTPS_ONLY is on and SVC_PROXIES is 0: all clients have the address of the proxy, and "
            "share one throttle of logins.",
            hint="Set SVC_PROXIES to the number of proxies in front that add to X-Forwarded-For.",
            id="svc.W013",
        )
    ]


@register(Tags.security, deploy=True)
def unnamed_hosts(**_: Any) -> list[CheckMessage]:
    """Warn: names under which people are to reach the gateway, and which it refuses."""
    allowed = [*settings.ALLOWED_HOSTS, *settings.SPEECH_HOSTS]
    public = urlsplit(settings.SVC_PUBLIC_URL).hostname
    found = []
    if (settings.SVC_PROXIES or settings.SVC_HTTPS_ONLY) and not _open_hosts():
        found.append("A proxy is set, and ALLOWED_HOSTS names this machine alone: every request")
    elif public and not validate_host(public, allowed):
        found.append(
            f"ALLOWED_HOSTS has not the host of SVC_PUBLIC_URL ({public}): a request for it"
        )
    return [
        Warning(
            f"{words} gets 400.",
            hint="Add the names that clients and people use to ALLOWED_HOSTS.",
            id="svc.W014",
        )
        for words in found
    ]


@register(Tags.security, deploy=True)
def metrics_closed(**_: Any) -> list[CheckMessage]:
    """Warn: without a token only this host can read the metrics, and no client behind a proxy."""
    if settings.SVC_METRICS_TOKEN:
        return []
    return [
        Warning(
            "SVC_METRICS_TOKEN is not set: /metrics answers this host only"
            + ("; with SVC_PROXIES above 0, nobody may." if settings.SVC_PROXIES else "."),
            hint="Set a token, and give it to the server that collects the metrics.",
            id="svc.W009",
        )
    ]


@register(Tags.security, deploy=True)
def mailed_links(**_: Any) -> list[CheckMessage]:
    """Warn: mailed links must lead to this gateway, and not travel in the clear."""
    url = settings.SVC_PUBLIC_URL
    if (url or not settings.SVC_SENDS_MAIL) and not url.startswith("http://"):
        return []
    found = (
        f"SVC_PUBLIC_URL ({url}) has no TLS: links that set a password would travel in the clear."
        if url
        else "EMAIL_URL is set without SVC_PUBLIC_URL: mailed links lead where the request that "
        "asked for one says it came, and other names and ports of this gateway get none."
    )
    hint = "Set SVC_PUBLIC_URL to the address of the console, as https://ai.example.com."
    return [Warning(found, hint=hint, id="svc.W010")]


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


@register(Tags.security, deploy=True)
def unwritable_disk(**_: Any) -> list[CheckMessage]:
    """Refuse: without the journal a database outage stops the gateway, and a kill loses rows."""
    journal = settings.SVC_DATA_DIR / "journal"
    try:
        # It is not made here, where it could belong to another user than the gateway's.
        try_disk(journal if journal.exists() else settings.SVC_DATA_DIR, _TRIED_BYTES)
    except OSError as error:
        return [
            Error(
                f"The journal cannot be written in {journal}: {error.strerror}.",
                hint="Make room there, or give SVC_DATA_DIR another disk, which the user that runs "
                "the gateway may write to.",
                id="svc.E003",
            )
        ]
    return []


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
        found.append(
            Warning(
                "The database has synchronous_commit = off: a crash loses what was answered last, "
                "the ledger's rows excepted.",
                hint="Set it to on for the gateway's role.",
                id="svc.W007",
            )
        )
    return found


@register(Tags.database, deploy=True)
def clocks_apart(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Warn: the database's clock stamps rows; the host's decides limits, days and prices."""
    difference = clock_difference() if "default" in (databases or ()) else None
    if difference is None or abs(difference) <= LARGEST_DIFFERENCE:
        return []
    return [
        Warning(
            f"The clocks of this host and of the database are {abs(difference):.1f} s apart.",
            hint="Let both follow a time server (chrony, systemd-timesyncd).",
            id="svc.W008",
        )
    ]


@register(Tags.database, deploy=True)
def locks_unreadable(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Warn: readers of the ledger find its running writers in ``pg_locks``."""
    if "default" not in (databases or ()) or connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_table_privilege('pg_catalog.pg_locks', 'SELECT') "
            "AND has_function_privilege('pg_catalog.pg_lock_status()', 'EXECUTE')"
        )
        if cursor.fetchone()[0]:
            return []
    return [
        Warning(
            "The database's role may not read pg_locks: no page of the usage export can be given.",
            hint="GRANT SELECT ON pg_locks TO the gateway's role, as PostgreSQL does for all roles.",
            id="svc.W011",
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
