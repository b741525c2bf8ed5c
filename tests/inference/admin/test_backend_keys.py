"""A backend's key is sent only to its own address, and no other secret is sent to a backend."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.changes import CATALOG, VOICES, lock
from accounts.models import Scope
from core import variables
from inference.models import Backend
from inference.probe import apply
from speech.models import SpeechBackend
from tests.support import live_catalog
from tests.support.builders import catalog_rows
from tests.support.builders import speech_rows as speech_making
from tests.support.live import NO_TLS, ROOT, Gateway
from tests.support.model_servers.dialects import VLLM, running
from tests.support.model_servers.scripted import Script, body, scripted_server
from tests.support.pages.admin_forms import filled_in, logged_in, operator
from tests.support.until import until

CHAT = "/admin/inference/backend/"
SPEECH = "/admin/speech/speechbackend/"
VARIABLE = "SVC_BACKEND_KEY_LIVE"


@contextmanager
def listener() -> Iterator[tuple[str, Callable[[], list[str | None]]]]:
    """A server's base URL, and a function that gives the ``Authorization`` of each request to it."""
    with scripted_server() as server:
        server.say(*[Script([body(b"{}", 400)])] * 2)
        yield (
            server.base_url,
            lambda: [each["headers"].get("authorization") for each in server.requests()],
        )


def test_a_chat_backends_key_stays_at_its_address(gateway_with: Callable[..., Gateway]) -> None:
    gateway = gateway_with(**{VARIABLE: "the-live-key"})
    client = logged_in(
        operator("inference.change_backend", email=f"{gateway.organization.pk}@a.example")
    )
    with listener() as (here, heard_here), listener() as (elsewhere, heard_elsewhere):
        backend = live_catalog.backend(gateway, base_url=here, api_key_env=VARIABLE)
        model = live_catalog.publish(gateway, backend).identifier
        page = f"{CHAT}{backend.pk}/change/"
        gateway.chat("hello", model)
        assert heard_here()[-1] == "Bearer the-live-key"

        moved = {**filled_in(client, page), "base_url": elsewhere}
        refused = client.post(page, moved)
        assert f"The key in {VARIABLE} would go to another address." in refused.content.decode()
        other = client.post(page, {**moved, "api_key_env": "DATABASE_URL"})
        assert "DATABASE_URL is a setting of the gateway" in other.content.decode()
        gateway.chat("hello", model)
        assert heard_elsewhere() == []

        # A row from before names were checked: it gets requests, but no secret.
        Backend.objects.filter(pk=backend.pk).update(base_url=elsewhere, api_key_env="DATABASE_URL")
        lock(CATALOG)
        until(lambda: gateway.chat("hello", model) and heard_elsewhere())
        assert set(heard_elsewhere()) == {None}

        Backend.objects.filter(pk=backend.pk).update(base_url=here, api_key_env=VARIABLE)
        assert client.post(page, {**moved, "key_variable_again": VARIABLE}).status_code == 302
        until(
            lambda: gateway.chat("hello", model) and heard_elsewhere()[-1] == "Bearer the-live-key"
        )


def test_a_speech_backends_key_stays_at_its_address(gateway_with: Callable[..., Gateway]) -> None:
    gateway = gateway_with(**{VARIABLE: "the-live-key"})
    client = logged_in(
        operator("speech.change_speechbackend", email=f"{gateway.organization.pk}@a.example")
    )
    key = gateway.mint(Scope.SPEECH)

    def speak() -> int:
        answer = httpx2.post(
            f"http://127.0.0.1:{gateway.speech_port}/v1/audio/speech",
            json={"voice": f"v{gateway.port}", "input": "Hello."},
            headers={"authorization": f"Bearer {key}"},
            timeout=60,
            verify=NO_TLS,
        )
        return answer.status_code

    with listener() as (here, heard_here), listener() as (elsewhere, heard_elsewhere):
        backend = speech_making.backend(f"b{gateway.port}", base_url=here, api_key_env=VARIABLE)
        speech_making.voice(f"v{gateway.port}", backend=backend, engine_voice="x")
        lock(VOICES)
        until(lambda: speak() and heard_here(), 30)
        assert heard_here()[-1] == "Bearer the-live-key"
        page = f"{SPEECH}{backend.pk}/change/"

        moved = {**filled_in(client, page), "base_url": elsewhere}
        refused = client.post(page, moved)
        assert f"The key in {VARIABLE} would go to another address." in refused.content.decode()
        # Behind a base URL without a path this would be a user name, and another host.
        host = elsewhere.removeprefix("http://").removesuffix("/v1")
        behind = {**moved, "base_url": here.removesuffix("/v1"), "speech_path": f"@{host}/x"}
        told = client.post(page, {**behind, "key_variable_again": VARIABLE})
        assert "Begin the path with a slash." in told.content.decode()

        SpeechBackend.objects.filter(pk=backend.pk).update(
            base_url=elsewhere, api_key_env="SECRET_KEY"
        )
        lock(VOICES)
        until(lambda: speak() and heard_elsewhere(), 30)
    assert set(heard_elsewhere()) == {None}


MakeOne = Callable[..., Backend | SpeechBackend]
BOTH_KINDS = pytest.mark.parametrize(
    ("page", "make_one"), [(CHAT, catalog_rows.backend), (SPEECH, speech_making.backend)]
)


@pytest.mark.django_db
@BOTH_KINDS
def test_the_address_changes_when_the_variable_is_given_again_or_taken_out(
    page: str, make_one: MakeOne
) -> None:
    client = logged_in(operator("inference.change_backend", "speech.change_speechbackend"))
    row = make_one("one", base_url="http://10.0.0.5/v1", api_key_env=VARIABLE)
    address = f"{page}{row.pk}/change/"
    form = filled_in(client, address)

    assert client.post(address, {**form, "base_url": "http://10.0.0.5/v1/"}).status_code == 302
    wrong = {**form, "base_url": "http://10.0.0.6/v1", "key_variable_again": "SVC_BACKEND_KEY_X"}
    assert client.post(address, wrong).status_code == 200
    again = {**form, "base_url": "http://10.0.0.6/v1", "key_variable_again": VARIABLE}
    assert client.post(address, again).status_code == 302
    without = {**form, "base_url": "http://10.0.0.7/v1", "api_key_env": ""}
    assert client.post(address, without).status_code == 302
    row.refresh_from_db()
    assert (row.base_url, row.api_key_env) == ("http://10.0.0.7/v1", "")


@pytest.mark.django_db
@BOTH_KINDS
def test_an_operator_who_may_only_view_backends_sees_their_page_and_a_refused_variable(
    page: str, make_one: MakeOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_NAME", "x")
    client = logged_in(operator("inference.view_backend", "speech.view_speechbackend"))
    row = make_one("one", api_key_env="OLD_NAME")
    shown = client.get(f"{page}{row.pk}/change/").content.decode()
    assert "OLD_NAME" in shown
    assert "API key variable, again" not in shown
    listed = client.get(page).content.decode()
    assert "No backend&#x27;s key is read from OLD_NAME." in listed
    assert "SVC_BACKEND_KEY_VARIABLES" in listed


def test_a_catalog_file_that_moves_a_backend_gives_its_variable_again_or_none(
    db: None, tmp_path: Path
) -> None:
    catalog_rows.backend("gpu", base_url="http://10.0.0.5/v1", api_key_env=VARIABLE)
    speech_making.backend("box", base_url="http://10.0.0.5/v1", api_key_env=VARIABLE)
    file = tmp_path / "catalog.toml"
    file.write_text(
        '[[backends]]\nname = "gpu"\nbase_url = "http://10.0.0.6/v1"\n'
        '[[speech_backends]]\nname = "box"\nbase_url = "http://10.0.0.6/v1"\nmodel = "m"\n'
        'protocol = "openai"\n'
    )
    call_command("load_catalog", str(file), verbosity=0)
    for row in (Backend.objects.get(), SpeechBackend.objects.get()):
        assert (row.base_url, row.api_key_env) == ("http://10.0.0.6/v1", "")


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["backends", "speech_backends"])
def test_a_catalog_file_cannot_name_another_secret(table: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.toml"
    file.write_text(
        f'[[{table}]]\nname = "gpu"\nbase_url = "http://10.0.0.6/v1"\napi_key_env = "PGPASSWORD"\n'
        + ('model = "m"\nprotocol = "openai"\n' if table == "speech_backends" else "")
    )
    with pytest.raises(CommandError) as told:
        call_command("load_catalog", str(file), verbosity=0)
    assert f"{table}[0].api_key_env: No backend's key is read from PGPASSWORD." in str(told.value)
    assert "SVC_BACKEND_KEY_VARIABLES" in str(told.value)


@pytest.mark.django_db
def test_a_probe_does_not_put_back_an_address_that_was_changed_meanwhile() -> None:
    backend = catalog_rows.backend(base_url="http://10.0.0.5", api_key_env=VARIABLE)
    found = apply.Change(backend, "base_url", "http://10.0.0.5", "http://10.0.0.5/v1", "found")
    Backend.objects.filter(pk=backend.pk).update(base_url="http://10.0.0.6/v1")
    with pytest.raises(ValidationError, match="probe again"):
        apply.write([found])
    backend.refresh_from_db()
    assert backend.base_url == "http://10.0.0.6/v1"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("variable", ["PATH", "SECRET_KEY"])
def test_a_probe_sends_no_other_secret(variable: str) -> None:
    with running(VLLM) as server, pytest.raises(CommandError, match="backend's key"):
        call_command("probe_backend", server.root, f"--api-key-env={variable}")


@pytest.mark.parametrize(
    "variable",
    [
        *("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SVC_KEY_PEPPERS", "SVC_KEY_PEPPER"),
        *("SVC_CAPTURE_KEYS", "SVC_CAPTURE_KEY", "SVC_CLONE_KEYS", "SVC_METRICS_TOKEN"),
        *("PATH", "HOME", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "SVC_BACKEND_KEY_"),
        *("SVC_BACKEND_KEY_VARIABLES", "SVC_BACKEND_KEY_GPU_FILE", "svc_backend_key_gpu"),
    ],
)
def test_other_variables_are_never_read_and_their_problem_is_the_same_set_or_not(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(variable, raising=False)
    unset = variables.problem(variable)
    (tmp_path / "secret").write_text("from the file")
    monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / "secret"))
    assert variables.secret_of(variable) is None
    monkeypatch.delenv(f"{variable}_FILE")
    monkeypatch.setenv(variable, "from the environment")
    assert variables.secret_of(variable) is None
    assert variables.problem(variable) == unset
    assert unset is not None
    assert "SVC_BACKEND_KEY_" in unset


def test_the_prefix_and_the_list_allow_a_variable(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    settings.SVC_BACKEND_KEY_VARIABLES = ["OPENAI_API_KEY", "SECRET_KEY", "SVC_KEY_PEPPERS"]
    monkeypatch.setenv("SECRET_KEY", "mine")
    monkeypatch.setenv("SVC_KEY_PEPPERS", "mine")
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    (tmp_path / "secret").write_text("two")
    monkeypatch.setenv(f"{VARIABLE}_FILE", str(tmp_path / "secret"))

    assert variables.secret_of("OPENAI_API_KEY") == "one"
    assert variables.secret_of(VARIABLE) == "two"
    assert variables.secret_of("SECRET_KEY") is None
    assert variables.secret_of("SVC_KEY_PEPPERS") is None
    assert variables.problem("SVC_BACKEND_KEY_UNSET") == (
        "The variable SVC_BACKEND_KEY_UNSET is not set in this process."
    )


def test_settings_cannot_be_listed_as_keys_of_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_VARIABLES", "OPENAI_API_KEY,SECRET_KEY")
    with pytest.raises(ImproperlyConfigured, match="settings of the gateway: SECRET_KEY"):
        runpy.run_path(str(ROOT / "svc_project/settings.py"))


def test_every_name_that_the_settings_read_is_refused() -> None:
    documented = json.dumps((ROOT / "docs/settings.md").read_text())
    names = [part for part in documented.split("`") if part.isupper() and part.isidentifier()]
    assert len(names) > 40
    assert [name for name in names if variables.refusal(name) is None] == []
