"""Headers of pages and cookies, and plain http refused behind a proxy that ends TLS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.cookies import Morsel, SimpleCookie

import httpx2
import pytest

from accounts.keys.keys import mint
from accounts.models import Membership, Scope, User
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway, fetch
from tests.support.pages.signed_in import token_of

PAGES = ["/console/login", "/admin/login/", "/console/keys", "/admin/", "/admin/accounts/apikey/"]
PASSWORD = "correct horse battery"
CLEAR = {"x-forwarded-proto": "http"}


@pytest.fixture
def email(gateway: Gateway) -> str:
    email = f"{gateway.organization.pk.hex}@svc.example"
    user = User.objects.create_superuser(email, PASSWORD)
    Membership.objects.create(user=user, organization=gateway.organization)
    return email


def cookies(answer: httpx2.Response) -> SimpleCookie:
    found = SimpleCookie()
    for header in answer.headers.get_list("set-cookie"):
        found.load(header)
    return found


def log_in(
    url: str, email: str, path: str = "/console/login", **headers: str
) -> tuple[httpx2.Response, dict[str, str]]:
    """The login's answer and the header with all cookies; sent by hand, as TLS ends elsewhere."""
    page = fetch(url + path, headers=headers)
    form = {"username": email, "password": PASSWORD, "csrfmiddlewaretoken": token_of(page.text)}
    held = cookies(page)
    answer = fetch(url + path, "POST", data=form, headers={**headers, **header_of(held)})
    return answer, header_of({**held, **cookies(answer)})


def header_of(held: Mapping[str, Morsel[str]]) -> dict[str, str]:
    return {"cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in held.items())}


def test_every_page_has_the_strict_headers(gateway: Gateway, email: str) -> None:
    _, session = log_in(gateway.url, email)
    slug = gateway.organization.slug
    for path in (each.replace("/keys", f"/{slug}/keys") for each in PAGES):
        is_login = path.endswith(("login", "login/"))
        answer = fetch(gateway.url + path, headers={} if is_login else session)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"].split("; ")
        assert {
            *("default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'"),
            *("form-action 'self'", "frame-ancestors 'none'"),
        } <= set(policy)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "camera=()" in answer.headers["permissions-policy"]
        assert "strict-transport-security" not in answer.headers
        assert "server" not in answer.headers


def test_a_session_reads_the_api_without_leaving_it_in_a_cache(
    gateway: Gateway, email: str
) -> None:
    _, session = log_in(gateway.url, email)
    answer = fetch(f"{gateway.base_url}/usage", headers=session)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "cookie" in answer.headers["vary"].lower()


@pytest.mark.parametrize("path", ["/console/login", "/admin/login/"])
def test_cookies_in_the_clear(gateway: Gateway, email: str, path: str) -> None:
    answer, _ = log_in(gateway.url, email, path)

    assert answer.status_code == 302
    found = cookies(answer)
    assert set(found) == {"csrftoken", "sessionid", "device"}
    for cookie in found.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert cookie["path"] == "/"
        assert not cookie["secure"]


def test_behind_tls(gateway_with: Callable[..., Gateway], email: str) -> None:
    gateway = gateway_with(SVC_HTTPS_ONLY="true")
    origin = f"https://127.0.0.1:{gateway.port}"

    answer, session = log_in(gateway.url, email, origin=origin)

    assert answer.status_code == 302
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    found = cookies(answer)
    assert set(found) == {"__Host-csrftoken", "__Host-sessionid", "__Host-device"}
    for cookie in found.values():
        assert cookie["secure"]
        assert cookie["httponly"]
        assert cookie["path"] == "/"
        assert not cookie["domain"]
    page = fetch(f"{gateway.url}/console/{gateway.organization.slug}/keys", headers=session)
    assert page.status_code == 200

    in_the_clear = fetch(f"{gateway.url}/console/login?a=b", headers=CLEAR)
    assert in_the_clear.status_code == 301
    assert in_the_clear.headers["location"] == f"{origin}/console/login?a=b"
    assert gateway.chat("say: behind tls").status_code == 200


def asked(gateway: Gateway, method: str, path: str, key: str, proto: str) -> httpx2.Response:
    on_speech = path.startswith(("/v1/audio", "/v1/voices"))
    url = f"http://127.0.0.1:{gateway.speech_port if on_speech else gateway.port}{path}"
    body = b"{}" if method == "POST" else None
    return fetch(url, method, key=key, content=body, headers={"x-forwarded-proto": proto})


def test_nothing_of_the_api_is_answered_or_redirected_over_plain_http(
    gateway_with: Callable[..., Gateway],
) -> None:
    gateway = gateway_with(SVC_HTTPS_ONLY="true")
    speech = mint(gateway.organization, Scope.SPEECH, "test").secret
    calls = [
        ("POST", "/v1/chat/completions", gateway.key),
        ("GET", "/v1/models", gateway.key),
        ("GET", "/manage/v1/organizations", gateway.key),
        ("POST", "/v1/audio/speech", speech),
        ("POST", "/v1/voices", speech),
        ("GET", "/v1/audio/voices", speech),
    ]
    for method, path, key in calls:
        for proto in ("http", "http, https", "ftp"):
            refused = asked(gateway, method, path, key, proto)
            assert refused.status_code == 400, path
            assert "https" in refused.json()["error"]["message"]
            assert "location" not in refused.headers
        by_tls = asked(gateway, method, path, key, "https")
        assert "https" not in by_tls.text, path

    chat = {"model": gateway.models["running"], "messages": [{"role": "user", "content": "say: a"}]}
    assert gateway.post(chat, headers=CLEAR).status_code == 400
    assert gateway.post(chat, headers={"x-forwarded-proto": "https"}).status_code == 200
    assert gateway.post(chat).status_code == 200
    assert len(gateway.rows()) == 2

    assert fetch(f"{gateway.url}/livez", headers=CLEAR).status_code == 200

    for proto, status in (("http", 400), ("https", 101)):
        with RawClient(gateway, gateway.speech_port) as client:
            head = client.upgrade(speech, f"x-forwarded-proto: {proto}")
            assert head.startswith(f"http/1.1 {status}".encode()), head
            assert status == 101 or b"https" in client.rest()
