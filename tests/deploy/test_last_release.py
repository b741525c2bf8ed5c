"""The last release serves on, while the schema of this one is migrated to and its code joins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateways import Served, launch, postgresql_database
from tests.support.hosts.load import Load
from tests.support.live import ROOT, database, fetch, output_of, run
from tests.support.until import until
from usage.models import SpeechRow, UsageRow

pytestmark = [pytest.mark.long, pytest.mark.postgresql, pytest.mark.timeout(600)]

LAST_RELEASE = "f03c82c"
"""The commit of 0.5.0; to be changed with each release."""


@dataclass(frozen=True)
class Release:
    """The code of a release, on a database of its own."""

    checkout: Path
    environment: dict[str, str]

    def manage(self, *arguments: str) -> str:
        """Run a command to its end; return what it prints."""
        command = (sys.executable, "manage.py", *arguments)
        return output_of(run(*command, cwd=self.checkout, environment=self.environment))

    def make(self, *arguments: str) -> dict[str, str]:
        """Run a command that makes something; return what it says of it."""
        made: dict[str, str] = json.loads(self.manage(*arguments, "--json"))
        return made


@pytest.fixture
def releases(served: Served, tmp_path: Path) -> Iterator[tuple[Release, Release]]:
    """The last release, whose schema and catalog the database has, and this one."""
    packed = subprocess.run(
        ["git", "archive", LAST_RELEASE], cwd=ROOT, check=False, capture_output=True
    )
    if packed.returncode:
        pytest.skip(f"the history lacks {LAST_RELEASE}, the last release")
    checkout = tmp_path / "last"
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(checkout, filter="data")
    with postgresql_database(f"svc_release_{os.getpid()}") as address:
        of_both = {**served.environment, "DATABASE_URL": address}
        last = Release(
            checkout,
            {
                **of_both,
                "DJANGO_SETTINGS_MODULE": "svc_project.settings",
                "SVC_DATA_DIR": str(tmp_path / "last-data"),
            },
        )
        this = Release(ROOT, {**of_both, "SVC_DATA_DIR": str(tmp_path / "this-data")})
        for directory in ("last-data", "this-data"):
            (tmp_path / directory).mkdir()
        catalog = tmp_path / "catalog.toml"
        text = (checkout / "tests/catalog.toml").read_text()
        catalog.write_text(text.replace("PORT", str(served.simulator.port)))
        last.manage("migrate", "-v0")
        last.manage("load_catalog", str(catalog))
        yield last, this


def statuses(release: Release, log: Path, keys: list[str]) -> list[int]:
    """What a gateway of ``release`` answers to each key."""
    command, port, _ = launch(release.environment, log, checkout=release.checkout)
    try:
        url = f"http://127.0.0.1:{port}/v1/models"
        return [fetch(url, key=key).status_code for key in keys]
    finally:
        assert command.stop() == 0


def with_pepper(release: Release, path: Path) -> Release:
    """``release`` with the pepper in a file."""
    environment = {**release.environment, "SVC_KEY_PEPPERS_FILE": str(path)}
    del environment["SVC_KEY_PEPPERS"]
    return replace(release, environment=environment)


def speak(speech_port: int, key: str) -> None:
    body = {"model": "tts-1", "voice": "ava", "input": "Both releases speak."}
    answer = fetch(f"http://127.0.0.1:{speech_port}/v1/audio/speech", "POST", key=key, json=body)
    assert answer.status_code == 200, answer.text


def sent_by(load: Load, chats: int) -> None:
    """Wait until ``load`` has sent as many chats again."""
    enough = load.sent.chats + chats
    until(lambda: load.sent.chats >= enough, 120)


def test_the_last_release_serves_on_the_schema_of_this_one(
    releases: tuple[Release, Release], tmp_path: Path, django_db_blocker: Any
) -> None:
    last, this = releases
    made = last.make("create_organization", "Both", "--plan", "enterprise")
    organization = made["organization_id"]
    key = last.make("create_key", organization, "--scope", "inference")["key"]
    speech_key = last.make("create_key", organization, "--scope", "speech")["key"]
    old, port, speech_port = launch(last.environment, tmp_path / "last.log", checkout=last.checkout)
    with Load(f"http://127.0.0.1:{port}/v1", key) as on_old:
        sent_by(on_old, 20)
        this.manage("migrate", "-v0")
        speak(speech_port, speech_key)
        sent_by(on_old, 60)
        new, new_port, new_speech_port = launch(this.environment, tmp_path / "this.log")
        with Load(f"http://127.0.0.1:{new_port}/v1", key) as on_new:
            speak(new_speech_port, speech_key)
            sent_by(on_new, 60)
            revoked = this.make("create_key", organization, "--scope", "inference")
            url = f"http://127.0.0.1:{port}/v1/models"
            until(lambda: fetch(url, key=revoked["key"]).status_code == 200)
            this.manage("revoke_key", revoked["api_key_id"])
            until(lambda: fetch(url, key=revoked["key"]).status_code == 401)
    assert (old.stop(), new.stop()) == (0, 0)

    for sent in (on_old.sent, on_new.sent):
        assert (sent.failed, sent.cut) == ([], [])
    this.manage("verify_ledger")
    name = this.environment["DATABASE_URL"].rpartition("/")[2]
    with django_db_blocker.unblock(), database(name):
        answered: set[str] = set().union(*(each.sent.answered for each in (on_old, on_new)))
        assert set(UsageRow.objects.values_list("request_id", flat=True)) == answered
        assert SpeechRow.objects.count() == 2


def test_keys_there_and_back_with_a_pepper_whose_file_ends_with_a_line_end(
    releases: tuple[Release, Release], tmp_path: Path
) -> None:
    pepper, path = "p" * 20 + "0123456789" * 3, tmp_path / "peppers"
    path.write_text(f"{pepper}\n")
    last, this = (with_pepper(each, path) for each in releases)
    organization = last.make("create_organization", "There and back")["organization_id"]
    make = ("create_key", organization, "--scope", "inference")
    before = last.make(*make)["key"]
    this.manage("migrate", "-v0")
    after = this.make(*make)["key"]

    assert statuses(this, tmp_path / "this.log", [before, after]) == [200, 200]
    assert statuses(last, tmp_path / "last.log", [before, after]) == [200, 401]
    # As docs/operate/upgrade.md says, in "Back to the release before".
    own = tmp_path / "peppers-of-0.5"
    own.write_text(f"{path.read_text()},{pepper}")
    last.environment["SVC_KEY_PEPPERS_FILE"] = str(own)
    assert statuses(last, tmp_path / "last.log", [before, after]) == [200, 200]
