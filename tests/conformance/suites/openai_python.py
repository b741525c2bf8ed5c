"""openai-python's own tests, from the source archive of the locked version, against the gateway.

They are written for a mock that accepts every value of OpenAI's document. They run as they are, and
those with values that the contract refuses run again with values that it takes. The tests of speech
replace the server by a mock, which is taken out.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path
from typing import Final

from tests.conformance.place import Place
from tests.conformance.results import Result
from tests.conformance.suites.programs import (
    BIN,
    LOCK,
    PROGRAMS,
    SuiteBroken,
    locked,
    pytest_results,
    run,
)

_CHAT: Final = "tests/api_resources/chat/test_completions.py"
_MODELS: Final = "tests/api_resources/test_models.py"
_SPEECH: Final = "tests/api_resources/audio/test_speech.py"
_ALL_PARAMS: Final = "create_with_all_params"
TAKEN: Final = (
    ('logit_bias={"foo": 0}', 'logit_bias={"0": 0}'),
    ("max_completion_tokens=0", "max_completion_tokens=16"),
    ("max_tokens=0", "max_tokens=16"),
)
"""Values of the tests that the contract refuses, and those put in their place."""
_MOCK: Final = (
    re.compile(r"^ +@pytest\.mark\.respx2\(.*\n", re.MULTILINE),
    re.compile(r", respx2_mock: MockRouter"),
    re.compile(r"^ +respx2_mock\..*\n", re.MULTILINE),
    re.compile(r"^ +assert .*\.json\(\) == .*\n", re.MULTILINE),
)
"""What the tests of speech have for their mock, and the answer of the mock."""


def check(place: Place) -> list[Result]:
    """Run the tests of chat completions, models and speech, loose, strict and with aiohttp."""
    source = fetch(place.directory)
    # A plug-in is imported by its name.
    shutil.copy(PROGRAMS / "openai_keys.py", source)
    chat = (source / _CHAT).read_text()
    with_taken = source / _CHAT.replace(".py", "_taken.py")
    with_taken.write_text(replaced(chat))
    speech = source / _SPEECH.replace(".py", "_live.py")
    speech.write_text(without_mock((source / _SPEECH).read_text()))
    return [
        *_run(source, place.base_url, place.key, "as written", _CHAT, _MODELS),
        *_run(source, place.base_url, place.key, "valid values", with_taken, "-k", _ALL_PARAMS),
        *_run(source, place.speech_url, place.speech_key, "speech", speech, _MODELS),
    ]


def replaced(text: str) -> str:
    """Put accepted values in place of the refused ones. Raises ``SuiteBroken`` for one not there."""
    for refused, taken in TAKEN:
        if refused not in text:
            raise SuiteBroken(f"the tests of this openai have no {refused}")
        text = text.replace(refused, taken)
    return text


def without_mock(text: str) -> str:
    """Take the mock out of the tests of speech, and the assertions of its answer."""
    for pattern in _MOCK:
        text = pattern.sub("", text)
    return text


def pin(lock: str) -> str:
    """Return the entry of openai in the lock, with its hashes."""
    found = re.search(r"^openai==.*(?:\n +--hash.*)+", lock, re.MULTILINE)
    assert found
    return found[0]


def fetch(directory: Path) -> Path:
    """Download the source archive at the locked hash and unpack it. Raises ``SuiteBroken``."""
    wanted = directory / "openai.txt"
    wanted.write_text(pin(LOCK.read_text()) + "\n")
    options = (
        *("--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"),
        *("--no-binary", "openai", "--no-build-isolation"),
    )
    command: list[str | Path] = [BIN / "pip", "download", *options, "--dest", directory]
    printed = run([*command, "-r", wanted], directory)
    name = f"openai-{locked('openai')}"
    archive = directory / f"{name}.tar.gz"
    if not archive.exists():
        raise SuiteBroken(printed[-3000:])
    with tarfile.open(archive) as opened:
        opened.extractall(directory, filter="data")
    return directory / name


def _run(source: Path, address: str, key: str, title: str, *what: str | Path) -> list[Result]:
    found = pytest_results(
        ["-o", "addopts=", "-o", "log_level=ERROR", "-p", "openai_keys", *what],
        source,
        {"TEST_API_BASE_URL": address, "CONFORMANCE_KEY": key, "PYTHONPATH": str(source)},
    )
    return [Result(f"{title}: {each.case}", each.outcome, each.detail) for each in found]
