"""The catalog over the management API: what is shown can be sent back, a dry run changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.keys import keys
from accounts.models import AuditEntry, Organization, Scope
from inference.models import Backend, Deployment, ModelEntry, Price
from speech.models import SpeechBackend, Voice
from tests.support.cases.catalog_files import BACKEND, FUTURE, MODEL, SUCCESSOR, superseded

pytestmark = pytest.mark.django_db

DRAFT = MODEL.replace('"acme/demo-8b"', '"acme/draft"').replace("published = true\n", "")
SPEECH = """
[[speech_backends]]
name = "tts-1"
base_url = "http://127.0.0.1:9100/v1"
api_key_env = "SVC_BACKEND_KEY_TTS1"
model = "kokoro"
clone_mode = "inline"
serves_clones = true
sounds = { laughs = "<laugh>" }

[[voices]]
id = "ava"
engine_voice = "en-us+f3"

[[voices]]
id = "mia"
engine = "tts-1"
engine_voice = "af_bella"
enabled = false
"""
EVERYTHING = BACKEND + superseded() + SUCCESSOR + DRAFT + SPEECH


@pytest.fixture
def loaded(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(EVERYTHING, encoding="utf-8")
    call_command("load_catalog", path, verbosity=0)


def model(**changed: Any) -> dict[str, Any]:
    return {
        "id": "acme/new",
        "weights": "acme/new@1",
        "backends": [{"name": "gpu-1", "model": "new"}],
        "context_length": 4096,
        "max_request_bytes": 65536,
        "default_max_output_tokens": 512,
        "published": True,
        "pricing": {"input_per_mtok": "0.10", "output_per_mtok": "0.20", "currency": "USD"},
        **changed,
    }


def test_what_is_shown_can_be_sent_back_and_changes_nothing(ask: Any, loaded: None) -> None:
    shown = ask("GET", "catalog")
    written = AuditEntry.objects.count()
    assert shown.status_code == 200
    again = ask("PUT", "catalog", shown.json())
    assert (again.status_code, again.json()) == (200, {"dry_run": False, "changes": []})
    assert AuditEntry.objects.count() == written
    assert ask("GET", "catalog").json() == shown.json()


def test_the_whole_state_is_shown_without_secrets(
    ask: Any, loaded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU1", "the backend's secret")
    answer = ask("GET", "catalog")
    shown = answer.json()
    assert "the backend's secret" not in answer.content.decode()
    assert [each["api_key_env"] for each in shown["backends"]] == ["SVC_BACKEND_KEY_GPU1"]
    assert shown["backends"][0]["running_usage"] == "vllm"
    by_id = {each["id"]: each for each in shown["models"]}
    assert list(by_id) == ["acme/demo-8b", "acme/demo-8b-v2", "acme/draft"]
    old = by_id["acme/demo-8b"]
    assert (old["superseded_by"], old["shutdown_at"]) == ("acme/demo-8b-v2", FUTURE)
    served = {"name": "gpu-1", "model": "demo-8b-awq", "weight": 100, "draining": False}
    assert old["backends"] == [served]
    assert old["pricing"] == {
        "input_per_mtok": "0.15",
        "output_per_mtok": "0.60",
        "currency": "USD",
    }
    assert (by_id["acme/draft"]["published"], old["published"]) == (False, True)
    assert [each["engine"] for each in shown["voices"]] == ["espeak", "tts-1"]
    assert shown["speech_backends"][0]["sounds"] == {"laughs": "<laugh>"}


def test_a_draft_without_a_price_can_be_sent_back(ask: Any, loaded: None) -> None:
    weights = ModelEntry.objects.get(identifier="acme/draft").weights
    ModelEntry.objects.create(
        identifier="acme/unpriced",
        weights=weights,
        context_length=1,
        max_request_bytes=1,
        default_max_output_tokens=1,
    )
    shown = ask("GET", "catalog").json()
    assert shown["models"][-1]["pricing"] is None
    assert ask("PUT", "catalog", shown).json()["changes"] == []


def test_a_value_of_a_newer_release_is_shown_and_refused_when_it_is_sent(
    ask: Any, loaded: None
) -> None:
    Backend.objects.update(running_usage="of-a-newer-one")
    shown = ask("GET", "catalog").json()
    assert shown["backends"][0]["running_usage"] == "of-a-newer-one"
    refused = ask("PUT", "catalog", shown)
    param = refused.json()["error"]["param"]
    assert (refused.status_code, param) == (400, "backends[0].running_usage")


def test_a_dry_run_says_what_a_change_then_does(ask: Any, loaded: None) -> None:
    document = {"models": [model()], "voices": [{"id": "leo", "engine_voice": "en-us+m3"}]}
    written = AuditEntry.objects.count()

    planned = ask("PUT", "catalog?dry_run=true", document).json()
    assert planned["dry_run"] is True
    assert not ModelEntry.objects.filter(identifier="acme/new").exists()
    assert not Voice.objects.filter(pk="leo").exists()
    assert AuditEntry.objects.count() == written

    done = ask("PUT", "catalog?dry_run=false", document).json()["changes"]

    def without_time(line: str) -> str:
        return line.partition(" from ")[0]

    assert [*map(without_time, done)] == [*map(without_time, planned["changes"])]
    assert [without_time(line) for line in done] == [
        *("created weights acme/new@1", "created model acme/new"),
        *("created deployment acme/new@1 on gpu-1 as new", "price of acme/new"),
        *("published acme/new", "created voice leo"),
    ]
    assert ask("PUT", "catalog", document).json()["changes"] == []


def test_a_new_price_is_appended_and_the_old_one_stays(
    ask: Any, loaded: None, admin_key: Any
) -> None:
    ask("PUT", "catalog", {"models": [model()]})
    dearer = {"input_per_mtok": "0.30", "output_per_mtok": "0.20", "currency": "USD"}
    changes = ask("PUT", "catalog", {"models": [model(pricing=dearer)]}).json()["changes"]
    assert [line.partition(" from ")[0] for line in changes] == ["price of acme/new"]
    prices = Price.objects.filter(entry__identifier="acme/new").order_by("effective_from")
    assert [str(each.input_per_mtok.normalize()) for each in prices] == ["0.1", "0.3"]
    listed = ask("GET", "prices?model=acme/new").json()["data"]
    assert [each["input_per_mtok"] for each in listed] == ["0.10", "0.30"]
    assert listed[0]["effective_from"] < listed[1]["effective_from"]
    entry = AuditEntry.objects.filter(kind="price").latest("id")
    actor = f"admin key {admin_key.admin_key.prefix} (terraform)"
    assert (entry.actor, entry.source, entry.verb) == (actor, "api", "appended")


def test_a_change_is_audited_with_before_and_after(ask: Any, loaded: None) -> None:
    shown = ask("GET", "catalog").json()
    backend = {**shown["backends"][0], "max_concurrency": 8, "enabled": False}
    changes = ask("PUT", "catalog", {"backends": [backend]}).json()["changes"]
    assert changes == [
        "backend gpu-1: max_concurrency 256 -> 8",
        "backend gpu-1: enabled True -> False",
    ]
    entry = AuditEntry.objects.filter(kind="backend").latest("id")
    assert entry.changes == {"max_concurrency": [256, 8], "enabled": [True, False]}
    assert Deployment.objects.filter(enabled=True).exists(), "what is left out stays"


SETTINGS: dict[str, tuple[str, str, Any]] = {
    "who shares a prefix cache": ("backends", "prefix_cache", "organization"),
    "fields of a model": ("models", "extra_fields", {"chat_template_kwargs": {"think": False}}),
    "comments in silent streams": ("models", "keep_alive_seconds", 30.0),
    "defaults of a model": ("models", "defaults", {"temperature": 0.6, "stop": ["END"]}),
}
"""A key that is not in the loaded document, by its table, and a value that is not its default."""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_sent_is_shown_and_audited(ask: Any, loaded: None, name: str) -> None:
    table, key, value = SETTINGS[name]
    sent = {**ask("GET", "catalog").json()[table][0], key: value}
    before = ask("GET", "catalog").json()[table][0][key]

    (change,) = ask("PUT", "catalog", {table: [sent]}).json()["changes"]

    assert change.endswith(f": {key} {before} -> {value}")
    assert AuditEntry.objects.latest("id").changes == {key: [before, value]}
    shown = ask("GET", "catalog").json()
    assert shown[table][0][key] == value
    assert ask("PUT", "catalog", shown).json()["changes"] == []
    del sent[key]
    assert len(ask("PUT", "catalog", {table: [sent]}).json()["changes"]) == 1, "the default again"


def test_limits_of_organizations_on_a_model_are_those_sent(ask: Any, loaded: None) -> None:
    for name in ("acme", "north", "south"):
        Organization.objects.create(name=name)

    def sent(*limits: dict[str, Any]) -> list[str]:
        changes: list[str] = ask("PUT", "catalog", {"models": [model(limits=limits)]}).json()[
            "changes"
        ]
        return changes

    few = {"organization": "acme", "requests_per_minute": 60}
    many = {"organization": "north", "requests_per_minute": 5, "tokens_per_minute": 10**12}
    assert sent(few, many)[-3:-1] == [
        "created limit of acme on acme/new",
        "created limit of north on acme/new",
    ]
    shown = next(
        each for each in ask("GET", "catalog").json()["models"] if each["id"] == "acme/new"
    )
    assert shown["limits"] == [{**few, "tokens_per_minute": None}, many]
    assert ask("PUT", "catalog", {"models": [shown]}).json()["changes"] == []
    assert ask("PUT", "catalog", {"models": [model()]}).json()["changes"] == [], "left out"
    assert sent(
        {**few, "requests_per_minute": 90}, {"organization": "south", "tokens_per_minute": 7}
    ) == [
        "limit of acme on acme/new: requests_per_minute 60 -> 90",
        "created limit of south on acme/new",
        "deleted limit of north on acme/new",
    ]
    assert AuditEntry.objects.latest("id").changes["requests_per_minute"] == [5, None]
    assert len(sent()) == 2


@pytest.mark.parametrize(
    ("document", "param"),
    [
        ({"model": []}, "model"),
        ({"models": [model(context_length="4096")]}, "models[0].context_length"),
        ({"models": [model(pricing=None)]}, "models[0].pricing"),
        (
            {"models": [model(limits=[{"organization": "no", "tokens_per_minute": 1}])]},
            "models[0].limits[0].organization",
        ),
        (
            {"models": [model(pricing={**model()["pricing"], "currency": "usd"})]},
            "models[0].pricing.currency",
        ),
        (
            {"models": [model(pricing={**model()["pricing"], "input_per_mtok": 0.1})]},
            "models[0].pricing.input_per_mtok",
        ),
        (
            {"backends": [{"name": "x", "base_url": "http://a/v1", "api_key_env": "sk-1"}]},
            "backends[0].api_key_env",
        ),
        ({"models": [model(shutdown_at="tomorrow", superseded_by="x")]}, "models[0].shutdown_at"),
        ({"models": [model(id="a\0b")]}, "models[0].id"),
        ({"models": [model(weights="a\nb")]}, "models[0].weights"),
        ({"backends": [{"name": "a\nb", "base_url": "http://a/v1"}]}, "backends[0].name"),
        ({"backends": [{"name": " x", "base_url": "http://a/v1"}]}, "backends[0].name"),
        (
            {"speech_backends": [{"name": "\x1b[2J", "base_url": "http://a/v1", "model": "m"}]},
            "speech_backends[0].name",
        ),
        (
            {"backends": [{"name": "x", "base_url": "http://a/v1", "extra_fields": {"\0": 1}}]},
            None,
        ),
        (
            {"backends": [{"name": "x", "base_url": "http://169.254.169.254/"}]},
            "backends[0].base_url",
        ),
        ({"voices": [{"id": "leo", "engine_voice": "none"}]}, "voices[0].engine_voice"),
        ({"voices": [{"id": "leo", "engine_voice": "en", "engine": "no"}]}, "voices[0].engine"),
        (
            {"speech_backends": [{"name": "s", "base_url": "http://a/v1"}]},
            "speech_backends[0].model",
        ),
        ({"organizations": [{"name": "Acme"}]}, "organizations"),
        (b"[1]", None),
        (b"{", None),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_mistake_names_its_place_and_changes_nothing(
    ask: Any, loaded: None, document: Any, param: str | None, query: str
) -> None:
    before = ask("GET", "catalog").json()
    if isinstance(document, dict):
        # What is right stands before what is wrong, and must not stay.
        document = {"backends": [{"name": "a-new-one", "base_url": "http://a/v1"}]} | document
    answer = ask("PUT", f"catalog{query}", document)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert ask("GET", "catalog").json() == before


@pytest.mark.parametrize(
    ("method", "path", "status", "param"),
    [
        ("PUT", "catalog?dry_run=1", 400, "dry_run"),
        ("PUT", "catalog?dryrun=true", 400, "dryrun"),
        ("GET", "catalog?dry_run=true", 400, "dry_run"),
        ("GET", "catalog?limit=5", 400, "limit"),
        ("GET", "prices", 400, "model"),
        ("GET", "prices?model=acme/none", 400, "model"),
        ("GET", "prices?model=a%00b", 400, "model"),
        ("PUT", "prices", 405, None),
        ("POST", "catalog", 405, None),
        ("PATCH", "catalog", 405, None),
        ("DELETE", "catalog", 405, None),
        ("GET", "catalog/", 404, None),
        ("GET", "catalogs", 404, None),
    ],
)
def test_other_requests_are_refused(
    ask: Any, method: str, path: str, status: int, param: str | None
) -> None:
    answer = ask(method, path, {} if method != "GET" else None)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    if status == 405:
        assert answer["allow"].startswith("GET, ")


@pytest.mark.parametrize("scope", Scope.values)
def test_no_api_key_reads_or_changes_the_catalog(ask: Any, scope: str) -> None:
    secret = keys.mint(Organization.objects.create(name="Acme"), Scope(scope)).secret
    document = {"backends": [{"name": "evil", "base_url": "http://a/v1"}]}
    assert ask("GET", "catalog", secret=secret).status_code == 401
    refused = ask("PUT", "catalog", document, secret=secret)
    assert (refused.status_code, refused["www-authenticate"]) == (401, "Bearer")
    assert not Backend.objects.exists()
    assert not SpeechBackend.objects.exists()
