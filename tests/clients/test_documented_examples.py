"""Every example of docs/connect.md and of the guides runs, and does what its heading says."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from accounts.models import Scope
from tests.support.clients.javascript import node
from tests.support.live import ROOT, Gateway, output_of, run
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount

pytestmark = pytest.mark.timeout(300)

CONNECT = ROOT / "docs/connect.md"
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
LITELLM = ROOT / ".venv-litellm/bin/python"
CLIP = "The morning train was late again, and so we walked along the river to the old mill."


@dataclass(frozen=True)
class Example:
    """A code block with its language."""

    language: str
    code: str

    def run(self, place: Place) -> str:
        """Run the example and return its output; fail when it fails."""
        code = self.code
        for written, port in (("8000", place.gateway.port), ("8001", place.gateway.speech_port)):
            code = code.replace(f"://127.0.0.1:{written}/", f"://127.0.0.1:{port}/")
        if self.language == "js":
            return node("--input-type=module", "-", stdin=code, environment=place.environment)
        if self.language == "sh" and shutil.which("curl") is None:
            pytest.skip("curl is missing: install it to run this example")
        python = str(LITELLM) if "import litellm" in code else sys.executable
        if not Path(python).exists():
            pytest.skip("LiteLLM is missing: run `make clients` to run this example")
        shell = ["sh", "-euc"] if self.language == "sh" else [python, "-c"]
        return output_of(run(*shell, code, cwd=place.directory, env=place.environment))


@dataclass(frozen=True)
class Place:
    """Where examples run: a gateway, keys for it, and an empty folder."""

    gateway: Gateway
    speech: SpeechAccount
    directory: Path

    @cached_property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "OPENAI_BASE_URL": self.gateway.base_url,
            "OPENAI_API_KEY": self.gateway.key,
            "SVC_API_KEY": self.gateway.key,
            "SVC_READ_KEY": self.gateway.mint(Scope.READ),
            "SVC_SPEECH_KEY": self.speech.key,
            "NO_PROXY": "127.0.0.1",
        }


@pytest.fixture
def place(gateway: Gateway, tmp_path: Path) -> Place:
    return Place(gateway, speech_account(gateway), tmp_path)


def examples(page: Path) -> dict[str, Example]:
    found = {}
    for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)[1:]:
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
HELLO = r"\AHello, Ada!\n"
IN_GUIDES: dict[str, dict[str, tuple[str, list[str]]]] = {
    "quick-start": {
        "Send a first request": (HELLO + r"13 \+ 4 tokens\n\Z", ["chat"]),
        "The same with curl": (r'"content":"Hello, Ada!"', ["chat"]),
        "The same in JavaScript": (HELLO, ["chat"]),
        "List the models": (r'"id":"acme/demo-8b"', []),
    },
    "streaming": {
        "Read a stream in Python": (HELLO + r"13 \+ 4 tokens\n\Z", ["chat"]),
        "Read a stream in JavaScript": (HELLO + r"17 tokens\n\Z", ["chat"]),
        "Read a stream without an SDK": (HELLO + r"whole\n\Z", ["chat"]),
    },
    "tools": {
        "The whole loop": (r"14 degrees and rain in Paris", ["tools", "tools"]),
        "Collect a streamed call": (r"\Aget_weather {'city': 'Paris'}\n\Z", ["tools"]),
    },
    "structured-output": {
        "From a class in Python": (r"city='Lyon' degrees=21", ["json_schema"]),
        "From a schema": (r'"content":"{\\"city\\":\\"Lyon\\",\\"degrees\\":21}"', ["json_schema"]),
    },
    "limits": {"Retry in Python": (HELLO, ["chat"])},
    "usage": {
        "What this month cost": (r'"requests":0', []),
        "Read every row": (r"\A0 rows\n\Z", []),
        "Check the bill": (r"\Athe same\n\Z", []),
    },
    "speech": {
        "Speak a text": (r"\A\Z", []),
        "With OpenAI's SDK": (r"\A\Z", []),
        "Which voices there are": (r'"id":"ava"', []),
        "Stream a PCM answer": (r"\A[12]\.\d seconds\n\Z", []),
        "Speak while a text is written": (r"ready.*session\.done", []),
    },
    "clones": {"Make a clone": (r"\Avoice_\w+ \d\.\d+\n.*'deleted': True}\n\Z", [])},
    "from-openai": {"What to change": (HELLO, ["chat"])},
    "from-litellm": {"Keep the library": (HELLO, ["chat"])},
}


def test_every_example_of_the_page_is_tested() -> None:
    assert examples(CONNECT).keys() == PROMISES.keys()
    found = {page.stem: examples(page).keys() for page in GUIDES}
    assert {name: keys for name, keys in found.items() if keys} == {
        name: promises.keys() for name, promises in IN_GUIDES.items()
    }


@pytest.mark.parametrize("heading", PROMISES)
def test_an_example_does_what_its_heading_says(place: Place, heading: str) -> None:
    check(place, examples(CONNECT)[heading], *PROMISES[heading])


@pytest.mark.parametrize(
    ("guide", "heading"),
    [(guide, heading) for guide, promises in IN_GUIDES.items() for heading in promises],
)
def test_an_example_of_a_guide_does_what_its_heading_says(
    place: Place, guide: str, heading: str
) -> None:
    if guide == "clones":
        (place.directory / "anna.wav").write_bytes(place.speech.speak(CLIP).content)
    example = examples(ROOT / f"docs/guides/{guide}.md")[heading]
    check(place, example, *IN_GUIDES[guide][heading])


def test_the_bill_of_real_rows_is_the_same(place: Place) -> None:
    for text in ("say: one", "say: two"):
        place.gateway.chat(text)

    printed = examples(ROOT / "docs/guides/usage.md")["Check the bill"].run(place)

    assert printed == "the same\n"


def check(place: Place, example: Example, prints: str, shapes: list[str]) -> None:
    printed = example.run(place)

    assert re.search(prints, printed, re.DOTALL), printed
    assert [(row.shape, row.outcome) for row in place.gateway.rows()] == [
        (shape, "success") for shape in shapes
    ]
