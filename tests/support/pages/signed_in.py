"""A person with a session of a live gateway's console, who sends what its scripts send."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from django.test import Client
from websockets.sync.client import ClientConnection, connect

from accounts.models import Membership, User
from tests.support.live import Gateway, fetch
from usage.models import SpeechRow


@dataclass
class SignedIn:
    """``cookies`` are those of the browser, ``token`` is the CSRF token of a page."""

    gateway: Gateway
    user: User
    cookies: dict[str, str]
    token: str

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    @property
    def headers(self) -> dict[str, str]:
        return {"cookie": self.cookie, "origin": self.gateway.url, "x-csrftoken": self.token}

    def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """POST ``body``, bytes unchanged; ``headers`` replace the browser's."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = self.headers if headers is None else dict(headers)
        return fetch(f"{self.gateway.url}{path}", "POST", content=content, headers=sent)

    def get(self, path: str) -> httpx2.Response:
        return fetch(f"{self.gateway.url}{path}", headers={"cookie": self.cookie})

    @contextmanager
    def connect(self, path: str, **headers: str) -> Iterator[ClientConnection]:
        """Open a WebSocket with the browser's cookies; ``headers`` replace ``Origin`` and them."""
        sent = {"cookie": self.cookie, "origin": self.gateway.url, **headers}
        with connect(
            self.gateway.url.replace("http", "ws", 1) + path,
            additional_headers={name: value for name, value in sent.items() if value},
            max_size=None,
            open_timeout=60,
            close_timeout=2,
        ) as socket:
            yield socket

    def speech_rows(self) -> list[SpeechRow]:
        """The organization's speech rows."""
        return list(SpeechRow.objects.filter(organization_id=self.gateway.organization.pk))


def sign_in(gateway: Gateway) -> SignedIn:
    """A new person of the gateway's organization, with a session and a token."""
    user = User.objects.create_user(f"{secrets.token_hex(6)}@svc.example", secrets.token_hex(8))
    Membership.objects.create(user=user, organization=gateway.organization)
    client = Client()
    client.force_login(user)
    session = {name: morsel.value for name, morsel in client.cookies.items()}
    person = SignedIn(gateway, user, session, token="")
    page = person.get(f"/console/{gateway.organization.slug}/voices")
    return replace(person, cookies={**session, **page.cookies}, token=token_of(page.text))


def token_of(page: str) -> str:
    """The CSRF token of a page's forms."""
    return str(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[0])
