"""The headers of every page."""

from __future__ import annotations

import re

VOICES_PAGE = re.compile(r"/console/[a-z0-9-]+/voices")
"""The one page with sound: it plays what it fetched, and records a clip for a clone."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Own files only, nothing inline: text of users on a page stays text."""

PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "camera",
        "display-capture",
        "geolocation",
        "hid",
        "microphone",
        "payment",
        "publickey-credentials-get",
        "serial",
        "usb",
    )
)
"""No page uses any of these, except the microphone on ``VOICES_PAGE``. The clipboard is allowed,
because pages copy a new key into it."""


def content_security_policy(path: str) -> str:
    """The ``Content-Security-Policy`` of the page at ``path``."""
    if VOICES_PAGE.fullmatch(path):
        # Sound that a script of the page has made of an answer; no address can be played.
        return f"{CONTENT_SECURITY_POLICY}; media-src blob:"
    return CONTENT_SECURITY_POLICY


def permissions_policy(path: str) -> str:
    """The ``Permissions-Policy`` of the page at ``path``."""
    if VOICES_PAGE.fullmatch(path):
        return PERMISSIONS_POLICY.replace("microphone=()", "microphone=(self)")
    return PERMISSIONS_POLICY


PAGE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"permissions-policy", PERMISSIONS_POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
