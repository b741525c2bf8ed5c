"""``manage.py check --deploy`` passes the documented settings, and names weak ones."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.db import connection
from pytest_django.fixtures import Settings

from svc_project.checks import (
    TEMPORARY_FILE_SYSTEMS,
    clocks_apart,
    file_system,
    removed_settings,
    temporary_disk,
    unsafe_commits,
)
from tests.support.live import ROOT, Ran, manage

OWN = re.compile(r"\b(svc\.[EW]\d{3})\b")


def documented(directory: Path) -> Iterator[tuple[str, str]]:
    """The settings of docs/operate/production.md, with secrets that exist."""
    page = (ROOT / "docs/operate/production.md").read_text()
    block = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    for line in block.strip().splitlines():
        name, value = line.split("=", 1)
        if name.endswith("_FILE"):
            path = directory / Path(value).name
            path.write_text(secrets.token_urlsafe(48) + "\n")
            value = str(path)
        yield name, str(directory) if name == "SVC_DATA_DIR" else value


def check(directory: Path, *arguments: str, **changed: str) -> Ran:
    settings = {**dict(documented(directory)), **changed}
    given = {name: value for name, value in settings.items() if value != "(unset)"}
    return manage("check", *arguments, "--fail-level", "WARNING", **given)


def own_disk(directory: Path) -> set[str]:
    """The warnings about the disk that the tests run on."""
    kind = file_system(directory, Path("/proc/self/mountinfo"))
    return {"svc.W005"} if kind in TEMPORARY_FILE_SYSTEMS else set()


def test_the_documented_settings_pass(tmp_path: Path) -> None:
    checked = check(tmp_path, "--deploy")

    assert set(OWN.findall(checked.stderr)) == own_disk(tmp_path)
    assert checked.returncode == bool(own_disk(tmp_path)), checked.stderr
    assert not list(tmp_path.glob("*.secret"))


WEAK = {
    "ALLOWED_HOSTS": ("*", "svc.W001", "ALLOWED_HOSTS takes every host"),
    "SECRET_KEY_FILE": ("(unset)", "svc.W002", "SECRET_KEY was not given"),
    "SVC_METRICS_TOKEN_FILE": ("(unset)", "svc.W009", "with SVC_PROXIES above 0, nobody may"),
    "SVC_KEY_PEPPERS_FILE": ("(unset)", "svc.W002", "SVC_KEY_PEPPERS was not given"),
    "SVC_CAPTURE_KEYS_FILE": ("(unset)", "svc.W002", "SVC_CAPTURE_KEYS was not given"),
    "SVC_CLONE_KEYS_FILE": ("(unset)", "svc.W002", "SVC_CLONE_KEYS was not given"),
    "SVC_HTTPS_ONLY": ("false", "svc.W004", "may travel in the clear"),
    "SVC_PUBLIC_URL": ("http://ai.example.com", "svc.W010", "has no TLS"),
}
OTHERWISE_WEAK = {
    "SVC_KEY_PEPPERS_FILE": ("(unset)", "svc.W003", "holds a secret of fewer than 32 characters"),
    "SVC_KEY_PEPPERS": ("pepper," + "a" * 48, "svc.W003", "SVC_KEY_PEPPERS holds a secret"),
    "SVC_PUBLIC_URL": ("(unset)", "svc.W010", "EMAIL_URL is set without SVC_PUBLIC_URL"),
    "EMAIL_URL": ("smtp://mail.internal:25", "svc.W010", "EMAIL_URL is set without"),
}


@pytest.mark.parametrize("weak", [WEAK, OTHERWISE_WEAK], ids=["weak", "otherwise weak"])
def test_each_weak_setting_is_named(tmp_path: Path, weak: dict[str, tuple[str, str, str]]) -> None:
    checked = check(tmp_path, "--deploy", **{name: value for name, (value, *_) in weak.items()})

    assert checked.returncode == 1
    found = {name for _, name, _ in weak.values()}
    assert set(OWN.findall(checked.stderr)) == found | own_disk(tmp_path)
    assert [words for *_, words in weak.values() if words not in checked.stderr] == []


def test_debug_on_public_hosts_stops_every_command(tmp_path: Path) -> None:
    refused = check(tmp_path, DEBUG="true")
    assert refused.returncode == 1
    assert OWN.findall(refused.stderr) == ["svc.E001"]
    assert "ai.example.com" in refused.stderr

    at_a_desk = check(
        tmp_path,
        DEBUG="true",
        ALLOWED_HOSTS="localhost,.localhost,127.0.0.1,[::1]",
        SPEECH_HOSTS="",
    )
    assert at_a_desk.returncode == 0, at_a_desk.stderr


def test_durable_admissions_in_a_file_of_this_host_stop_every_command(tmp_path: Path) -> None:
    refused = check(
        tmp_path, SVC_DURABLE_ADMISSIONS="true", DATABASE_URL=f"sqlite:///{tmp_path}/svc.sqlite3"
    )

    assert refused.returncode == 1
    assert OWN.findall(refused.stderr) == ["svc.E002"]


MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - overlay overlay rw
30 22 0:26 / /dev/shm rw - tmpfs tmpfs rw
31 22 254:2 / /var/lib/svc rw shared:9 - ext4 /dev/vdb rw
32 31 0:27 / /var/lib/svc/fast\\040one rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/app/var", "overlay"),
        ("/var/lib", "overlay"),
        ("/var/lib/svc", "ext4"),
        ("/var/lib/svc/journal", "ext4"),
        ("/var/lib/svc/fast one/journal", "tmpfs"),
        ("/var/lib/svc-of-another", "overlay"),
    ],
)
def test_the_disk_under_the_journal_is_found_by_its_mount(
    tmp_path: Path, place: str, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(Path(place), mounts) == kind
    assert file_system(Path(place), tmp_path / "none") is None


def test_a_journal_in_memory_is_named(settings: Settings) -> None:
    shared_memory = Path("/dev/shm")
    if file_system(shared_memory, Path("/proc/self/mountinfo")) != "tmpfs":
        pytest.skip("no memory file system here")
    settings.SVC_DATA_DIR = shared_memory
    assert named(temporary_disk()) == ["svc.W005"]


def test_a_removed_setting_that_is_still_given_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert removed_settings() == []
    monkeypatch.setenv("SVC_HEAD_SECONDS", "60")
    monkeypatch.setenv("SVC_POISON_SECONDS_FILE", "/run/secrets/seconds")
    assert [each.msg for each in removed_settings()] == [
        "SVC_HEAD_SECONDS is no setting any more and has no effect. SVC_CLIENT_SECONDS replaces it.",
        "SVC_POISON_SECONDS is no setting any more and has no effect. It is 300.",
    ]


def named(found: list[CheckMessage]) -> list[str | None]:
    return [each.id for each in found]


@pytest.mark.postgresql
@pytest.mark.django_db
def test_unsafe_commits_are_named() -> None:
    assert named(unsafe_commits(["default"])) == []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    (held,) = unsafe_commits(["default"])
    assert (held.id, "rows excepted" in held.msg) == ("svc.W007", True)
    assert unsafe_commits() == [], "the database is queried only with --database default"


@pytest.mark.postgresql
@pytest.mark.django_db
def test_clocks_that_are_apart_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(clocks_apart(["default"])) == []
    ahead = lambda: datetime.now(UTC) + timedelta(minutes=5)  # noqa: E731
    monkeypatch.setattr("core.database.clocks.now", ahead)
    assert named(clocks_apart(["default"])) == ["svc.W008"]
    assert named(clocks_apart()) == [], "the database is queried only with --database default"


def test_a_data_directory_that_takes_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"not a directory")
    refused = check(tmp_path, "--deploy")

    assert refused.returncode == 1
    assert set(OWN.findall(refused.stderr)) == {"svc.E003"} | own_disk(tmp_path)
    assert (
        f"The journal cannot be written in {tmp_path}/journal: Not a directory." in refused.stderr
    )
