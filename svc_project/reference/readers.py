"""Who reads the docs: pages are rendered once, and each answer gets its reader's addresses and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.html import escape

from accounts.console import first_request
from accounts.keys.authentication import session_organization
from accounts.models import Organization, Scope, User
from svc_project.reference.examples import INFERENCE, MANAGEMENT, MODEL, SPEECH, VOICE


@dataclass(frozen=True, slots=True)
class Reader:
    """``organization`` is None without a session; ``model`` and ``voice`` are those of the examples."""

    organization: Organization | None
    model: str
    voice: str


ANYBODY: Final = Reader(None, "MODEL", "VOICE")
"""A reader without a session, to whom no catalog is shown."""


def reader_of(request: HttpRequest) -> Reader:
    """The reader by the console's session. A request without its cookie needs no query."""
    user = request.user
    organization = session_organization(request, user) if isinstance(user, User) else None
    if organization is None:
        return ANYBODY
    model, voice = (
        first_request.examples[scope](organization) for scope in (Scope.INFERENCE, Scope.SPEECH)
    )
    return Reader(organization, model or ANYBODY.model, voice or ANYBODY.voice)


def filled(page: str, request: HttpRequest, reader: Reader) -> str:
    """``page`` with the addresses by which ``request`` came, and the reader's names."""
    inference = first_request.inference_url(request)
    speech = first_request.speech_url(request)
    values = {
        SPEECH.replace("https:", "wss:"): speech.replace("http", "ws", 1),
        SPEECH.removesuffix("/v1"): speech.removesuffix("/v1"),
        MANAGEMENT: inference.removesuffix("/v1") + "/manage/v1",
        INFERENCE: inference,
        INFERENCE.removesuffix("/v1"): inference.removesuffix("/v1"),
        MODEL: reader.model,
        VOICE: reader.voice,
    }
    for placeholder, value in values.items():
        page = page.replace(placeholder, escape(value))
    return page
