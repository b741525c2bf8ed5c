"""langchain-tests: the standard integration tests that LangChain has for every chat model."""

from __future__ import annotations

import shutil
from typing import Final

from tests.conformance.place import MODEL, Place
from tests.conformance.results import Result
from tests.conformance.suites.programs import PROGRAMS, pytest_results

OTHER_MODEL: Final = "gpt-6-astra"
METHODS: Final = {"function_calling": "", "json_schema": "structured", "json_mode": "structured"}
"""The ways to structured output, and the part of the tests' names that each is tried with."""


def run(place: Place) -> list[Result]:
    """Run the whole suite, and its tests of structured output by each way."""
    directory = place.directory / "langchain"
    directory.mkdir()
    # Beside no conftest.py of ours, which pytest would load.
    program = shutil.copy(PROGRAMS / "langchain_chat.py", directory)
    results = []
    for method, part in METHODS.items():
        found = pytest_results(
            [
                *("-c", "/dev/null", "--rootdir", str(directory), "-k", part),
                *("-o", "asyncio_mode=auto"),
                # LangChain keeps one HTTP client for the process, which belongs to one event loop.
                *("-o", "asyncio_default_fixture_loop_scope=session"),
                *("-o", "asyncio_default_test_loop_scope=session", program),
            ],
            directory,
            {
                "CONFORMANCE_METHOD": method,
                "CONFORMANCE_MODEL": MODEL,
                "CONFORMANCE_OTHER_MODEL": OTHER_MODEL,
                "CONFORMANCE_BASE_URL": place.base_url,
                "CONFORMANCE_KEY": place.key,
            },
        )
        results += [
            Result(f"{method}: {each.case.partition('::')[2]}", each.outcome, each.detail)
            for each in found
        ]
    return results
