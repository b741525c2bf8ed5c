"""Real model servers, unmodified, behind the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.servers.llama import LlamaServer, running_llama

# Checks are not in test modules, and are to say what they saw all the same.
pytest.register_assert_rewrite("tests.real.checks", "tests.real.trial")


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A running llama.cpp server of this test worker."""
    with running_llama(tmp_path_factory.mktemp("llama")) as server:
        yield server
