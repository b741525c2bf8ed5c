"""The way to the first request: this gateway's addresses, a model or voice, and code to copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port

from accounts.console import snippets
from accounts.console.snippets import Snippet
from accounts.models import Organization, Scope

Example = Callable[[Organization], str | None]

examples: dict[Scope, Example] = {}
"""Functions that name a model (inference) or a voice (speech) for an organization's first request.

The apps that know models and voices add theirs when Django starts.
"""


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """What a request with a key of one scope needs. ``named`` is the model or voice in the code."""

    scope: Scope
    title: str
    base_url: str
    named: str
    snippets: tuple[Snippet, ...]


def first_request(
    request: HttpRequest, organization: Organization, scope: Scope
) -> FirstRequest | None:
    """Return the code of a first request with ``scope``; None while nothing serves it."""
    if scope is Scope.READ:
        base_url = inference_url(request)
        return FirstRequest(scope, "Usage of this month", base_url, "", snippets.usage(base_url))
    named = examples[scope](organization) if scope in examples else None
    if named is None:
        return None
    if scope is Scope.SPEECH:
        base_url = speech_url(request)
        spoken = {"voice": named, "input": "Hello! How do I sound?", "response_format": "wav"}
        return FirstRequest(scope, "Speech", base_url, named, snippets.speech(base_url, spoken))
    base_url = inference_url(request)
    asked = {"model": named, "messages": [{"role": "user", "content": "Hello!"}]}
    return FirstRequest(scope, "Chat", base_url, named, snippets.chat(base_url, asked))


def inference_url(request: HttpRequest) -> str:
    """The base URL of the chat API, as this browser reaches it."""
    return request.build_absolute_uri("/v1")


def speech_url(request: HttpRequest) -> str:
    """The base URL of the speech API: its own host when it has one, else its port on this host."""
    host, port = split_domain_port(request.get_host())
    if settings.SPEECH_HOSTS:
        own = settings.SPEECH_HOSTS[0].lstrip(".")
        return f"{request.scheme}://{own}{f':{port}' if port else ''}/v1"
    return f"{request.scheme}://{host}:{settings.SVC_SPEECH_PORT}/v1"
