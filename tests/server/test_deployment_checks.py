"""``manage.py check --deploy``: nothing to say about the documented settings, and plain words else."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import ROOT

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


def check(directory: Path, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **dict(documented(directory)), **changed}
    return subprocess.run(
        [sys.executable, "manage.py", "check", *arguments, "--fail-level", "WARNING"],
        cwd=ROOT,
        env={name: value for name, value in environment.items() if value != "(unset)"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_documented_settings_leave_nothing_to_say(tmp_path: Path) -> None:
    checked = check(tmp_path, "--deploy")

    assert checked.returncode == 0, checked.stderr
    assert not list(tmp_path.glob("*.secret"))


@pytest.mark.parametrize(
    ("changed", "found", "words"),
    [
        ({"ALLOWED_HOSTS": "*"}, "svc.W001", "ALLOWED_HOSTS takes every host"),
        ({"SECRET_KEY_FILE": "(unset)"}, "svc.W002", "SECRET_KEY was not given"),
        ({"SVC_KEY_PEPPERS_FILE": "(unset)"}, "svc.W002", "SVC_KEY_PEPPERS was not given"),
        ({"SVC_CAPTURE_KEYS_FILE": "(unset)"}, "svc.W002", "SVC_CAPTURE_KEYS was not given"),
        ({"SVC_CLONE_KEYS_FILE": "(unset)"}, "svc.W002", "SVC_CLONE_KEYS was not given"),
        (
            {"SVC_KEY_PEPPERS_FILE": "(unset)", "SVC_KEY_PEPPERS": "pepper," + "a" * 48},
            "svc.W003",
            "SVC_KEY_PEPPERS holds a secret of fewer than 32 characters",
        ),
        ({"SVC_HTTPS_ONLY": "false"}, "svc.W004", "may travel in the clear"),
    ],
)
def test_a_weak_setting_is_named(
    tmp_path: Path, changed: dict[str, str], found: str, words: str
) -> None:
    checked = check(tmp_path, "--deploy", **changed)

    assert checked.returncode == 1
    assert set(OWN.findall(checked.stderr)) == {found}
    assert words in checked.stderr


def test_debug_in_the_open_stops_every_command(tmp_path: Path) -> None:
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
