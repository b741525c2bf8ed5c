"""The JDK's own HTTP client, as it is by default: it asks for HTTP/2 with every request."""

from __future__ import annotations

import pytest

from tests.support.live import ROOT, Gateway, output_of
from tests.support.live import run as run_program
from tests.support.servers.programs import debian_program
from tests.support.speech.accounts import speech_account
from tests.support.until import until

TEXT = "Good morning."
VERSIONS = ("default", "HTTP/1.1")


def run(lines: list[str]) -> list[list[str]]:
    """Run ``java/Gateway.java`` with ``lines`` as its input; the fields of each line that it prints."""
    # A runtime without a compiler has `java` too, and could not run a source file.
    debian_program("javac", "default-jdk-headless")
    java = debian_program("java", "default-jdk-headless")
    program = ROOT / "tests/clients/java/Gateway.java"
    printed = output_of(run_program(java, program, input="\n".join(lines) + "\n"))
    return [line.split("\t") for line in printed.splitlines()]


@pytest.mark.walk
@pytest.mark.timeout(150)
def test_the_client_of_the_jdk(gateway: Gateway) -> None:
    speech = speech_account(gateway)

    told = run([gateway.base_url, gateway.key, f"{speech.url}/v1", speech.key])

    for version in VERSIONS:
        seen = [
            (asked, int(status), content)
            for name, asked, status, content in told
            if name == version
        ]
        assert seen[:4] == [
            ("models", 200, "listed"),
            ("chat", 200, "first"),
            ("chat", 200, "second"),
            ("stream", 200, "streamed"),
        ]
        assert [(asked, status) for asked, status, _ in seen[4:]] == [
            ("speech", 200),
            ("session", 1000),
        ]
        assert all(int(content) > 10_000 for _, _, content in seen[4:])
    # Rows of sessions come after their close.
    rows = until(lambda: rows if len(rows := speech.rows()) >= 2 * len(VERSIONS) else None)
    spoken = [("success", len(TEXT))] * 2 * len(VERSIONS)
    assert [(row.outcome, row.characters) for row in rows] == spoken
    assert [row.outcome for row in gateway.rows()] == ["success"] * 3 * len(VERSIONS)
