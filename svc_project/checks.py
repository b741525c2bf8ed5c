"""System checks for settings that are fine at a desk and weak in the open.

``manage.py check --deploy`` runs all of them, with Django's own. docs/operate/production.md shows
settings that pass.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

SHORTEST_SECRET = 32
"""Characters; with fewer a secret is likelier a word than random."""


@register(Tags.security)
def debug_in_the_open(**_: Any) -> list[CheckMessage]:
    """Refuses to start: debug pages show settings and code to whoever causes an error."""
    if not settings.DEBUG or not _open_hosts():
        return []
    return [
        Error(
            f"DEBUG is on, and hosts besides this machine are served: {', '.join(_open_hosts())}.",
            hint="Set DEBUG=false, or leave only localhost in ALLOWED_HOSTS.",
            id="svc.E001",
        )
    ]


@register(Tags.security, deploy=True)
def any_host(**_: Any) -> list[CheckMessage]:
    """With ``*`` a forged Host header reaches the pages and the links that they write."""
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
def made_up_secrets(**_: Any) -> list[CheckMessage]:
    """Secrets that were made on first start lie beside the data and on this host only."""
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


def _open_hosts() -> list[str]:
    """The allowed hosts that are not this machine."""
    return [host for host in settings.ALLOWED_HOSTS if not _is_this_machine(host)]


def _is_this_machine(host: str) -> bool:
    name = host.strip("[]").lstrip(".").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _setting(name: str) -> str:
    """The setting that a made-up secret stands in for."""
    return {
        "SVC_KEY_PEPPER": "SVC_KEY_PEPPERS",
        "SVC_CAPTURE_KEY": "SVC_CAPTURE_KEYS",
        "SVC_CLONE_KEY": "SVC_CLONE_KEYS",
    }.get(name, name)
