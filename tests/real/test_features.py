"""Each cell of the feature table, behind a live gateway, against the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.real import feature_page
from tests.real.features import FEATURES, Feature
from tests.real.servers import transformers_serve
from tests.real.servers.llama import LlamaServer
from tests.real.servers.upstreams import Server, Upstreams
from tests.real.trial import Trial
from tests.support.live import Gateway


def cells() -> Iterator[ParameterSet]:
    """Server by server, so that few test workers start the same one.

    ``transformers serve`` is here only where it is installed, which it never is by default.
    """
    for server in Server:
        if server is Server.TRANSFORMERS and not transformers_serve.PROGRAM.exists():
            continue
        marks = [] if server is Server.LLAMA_CPP else [pytest.mark.timeout(600)]
        for feature in FEATURES:
            if feature.check_with(server) is not None:
                yield pytest.param(
                    feature, server, id=f"{server.name.lower()}-{feature.name}", marks=marks
                )


@pytest.fixture(scope="session")
def upstreams(llama: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstreams]:
    found = Upstreams(tmp_path_factory.mktemp("upstreams"), llama)
    yield found
    found.close()


@pytest.fixture(scope="session")
def identifiers() -> dict[tuple[str, str], str]:
    """What is published for the table, once for each test worker: server, model, identifier."""
    return {}


@pytest.mark.parametrize(("feature", "server"), list(cells()))
def test_feature(
    feature: Feature,
    server: Server,
    gateway: Gateway,
    upstreams: Upstreams,
    identifiers: dict[tuple[str, str], str],
    tmp_path: Path,
) -> None:
    check = feature.check_with(server)
    assert check is not None

    check(Trial(gateway, upstreams.get(server), identifiers, tmp_path / "spare"))


def test_the_documented_table_is_this_one() -> None:
    page = feature_page.PAGE.read_text()

    assert feature_page.with_table(page) == page, "run python -m tests.real.feature_page"
