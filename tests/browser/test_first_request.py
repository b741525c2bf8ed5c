"""A new user's way from the first sign-in to the first request, with the code that pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.support.clients.javascript import installed
from tests.support.until import until
from usage.models import SpeechRow

LANGUAGES = ("curl", "python", "javascript")


def run(language: str, code: str, folder: Path, key: str) -> str:
    """Run a snippet as a user would; return what it printed."""
    if language == "javascript":
        modules = folder / "node_modules"
        modules.symlink_to(installed() / "node_modules", target_is_directory=True)
        (folder / "request.mjs").write_text(code)
        command = ["node", "request.mjs"]
    elif language == "python":
        command = [sys.executable, "-c", code]
    else:
        command = ["sh", "-c", code]
    environment = {**os.environ, "SVC_API_KEY": key, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_key(page: Page, scope: str) -> str:
    """Create a key from the overview's first step; return what its page says to export."""
    page.click("#first-steps a[href$='/keys/new']")
    page.check(f"input[value={scope}]")
    page.fill("#id_label", "my first")
    page.click("text=Create the key")
    exported = page.locator("#export").inner_text()
    found = re.fullmatch(r"export SVC_API_KEY=(\S+)", exported)
    assert found is not None
    return found[1]


def test_the_code_of_a_new_chat_key_runs(consoling: Visit, tmp_path: Path) -> None:
    gateway, page = consoling.gateway, consoling.open("/console/")
    expect(page.locator("#first-steps")).to_be_visible()
    page.click("label[for=inference-python]")
    expect(page.locator("#inference-python-code")).to_be_visible()
    key = make_key(page, "inference")

    for language in LANGUAGES:
        code = page.locator(f"#first-{language}-code").text_content() or ""
        assert "hello" in run(language, code, tmp_path, key).lower(), language
    assert [row.outcome for row in gateway.rows_when(3)] == ["success"] * 3
    consoling.open("/console/")
    expect(page.locator("#today-requests")).to_have_text("3 requests")
    expect(page.locator("#first-steps")).to_have_count(0)


def test_the_code_of_a_new_speech_key_runs(consoling: Visit, tmp_path: Path) -> None:
    page = consoling.open("/console/")
    key = make_key(page, "speech")

    for language in LANGUAGES:
        run(language, page.locator(f"#first-{language}-code").text_content() or "", tmp_path, key)
        spoken = tmp_path / "hello.wav"
        assert spoken.read_bytes()[:4] == b"RIFF", language
        spoken.unlink()
    own = SpeechRow.objects.filter(organization_id=consoling.gateway.organization.pk)
    until(lambda: [row.outcome for row in own.all()] == ["success"] * 3)
    consoling.open("/console/requests?surface=speech")
    expect(page.locator("table.spoken tbody tr")).to_have_count(3)
