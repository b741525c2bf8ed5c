"""Every example of docs/connect.md runs unchanged and does what its heading says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.support.clients.javascript import node
from tests.support.live import ROOT, Gateway

pytestmark = pytest.mark.timeout(300)

PAGE = (ROOT / "docs/connect.md").read_text()
RUN_SECONDS = 60


@dataclass(frozen=True)
class Example:
    """A code block with its heading and language."""

    language: str
    code: str

    def run(self, gateway: Gateway) -> str:
        """Run the example and return its output; fail when it fails."""
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": gateway.base_url,
            "OPENAI_API_KEY": gateway.key,
        }
        if self.language == "js":
            return node("--input-type=module", "-", stdin=self.code, environment=environment)
        if self.language == "sh" and shutil.which("curl") is None:
            pytest.skip("curl is missing: install it to run this example")
        shell = ["sh", "-euc"] if self.language == "sh" else [sys.executable, "-c"]
        run = subprocess.run(
            [*shell, self.code],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


def examples() -> dict[str, Example]:
    found = {}
    for section in re.split(r"^#+ ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        for language, code in re.findall(
            r"^```(sh|python|js)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        ):
            assert heading not in found, "one example for each heading"
            found[heading] = Example(language, code)
    return found


# What each example prints (a regular expression), and the shapes of the rows that it writes.
PROMISES: dict[str, tuple[str, list[str]]] = {
    "List the models": (r'"id":"acme/demo-8b"', []),
    "Stream an answer with curl": (r"data: \[DONE\]\n\n\Z", ["chat"]),
    "Stream a conversation in Python": (r"Ada.*\n\d+ \+ \d+ tokens\n\Z", ["chat"]),
    "Let the model call a tool": (r"14 degrees and rain in Paris", ["tools", "tools"]),
    "Get an answer in the shape of a class": (r"city='Lyon' degrees=21", ["json_schema"]),
    "Handle errors": (r"\A404 model_not_found model req_[0-9a-f]{32}\n\Z", []),
    "Stream a conversation in JavaScript": (r"Ada.*\n\d+ tokens\n\Z", ["chat"]),
    "Chat, tools and structured output in LangChain": (
        r"14 degrees and rain in Paris.* \d+\ncity='Lyon' degrees=21\n\Z",
        ["tools", "chat", "json_schema"],
    ),
}


def test_every_example_of_the_page_is_tested() -> None:
    assert examples().keys() == PROMISES.keys()


@pytest.mark.parametrize("heading", PROMISES)
def test_an_example_does_what_its_heading_says(gateway: Gateway, heading: str) -> None:
    prints, shapes = PROMISES[heading]

    printed = examples()[heading].run(gateway)

    assert re.search(prints, printed, re.DOTALL), printed
    assert [(row.shape, row.outcome) for row in gateway.rows()] == [
        (shape, "success") for shape in shapes
    ]
