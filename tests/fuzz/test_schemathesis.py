"""Schemathesis sends a live gateway requests generated from its own OpenAPI documents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from accounts.keys import admin_keys
from accounts.models import Scope
from svc_project.openapi_consumers import MANAGEMENT_PATH, PATH
from tests.support.live import ROOT, Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import CLIP

HERE = Path(__file__).parent

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def run(
    directory: Path,
    url: str,
    key: str,
    *options: str,
    real: Mapping[str, str] | None = None,
    document: str = PATH,
    left_out: Sequence[str] = (),
) -> None:
    """Test all operations at ``url`` for a bounded time; assert that nothing was found.

    ``real`` are existing objects, for tests/fuzz/hooks.py; ``left_out`` are checks.
    """
    derandomized = ["--generation-deterministic"] if os.environ.get("CI") else []
    finished = subprocess.run(
        [
            *(
                str(Path(sys.executable).parent / "st"),
                "--config-file",
                str(HERE / "schemathesis.toml"),
            ),
            *("run", f"{url}{document}", "--header", f"Authorization: Bearer {key}"),
            # Every check is on without ``--checks all``, which would add one: 10 s of wall-clock
            # time for each answer, which a busy machine does not keep. A hang still fails.
            # No schema says which models and voices exist, and which texts are timestamps.
            *("--exclude-checks", ",".join(("positive_data_acceptance", *left_out))),
            *("--request-timeout", "60", "--no-color", *derandomized, *options),
        ],
        cwd=directory,
        env={
            **os.environ,
            **(real or {}),
            "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
            "PYTHONPATH": str(ROOT),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(finished.stdout)  # for -rP
    assert finished.returncode == 0, finished.stdout


def test_the_chat_surface_conforms_to_its_document(gateway: Gateway, tmp_path: Path) -> None:
    real = {"SVC_FUZZ_MODEL": gateway.models["running"]}
    run(tmp_path, gateway.url, gateway.key, "--include-path-regex", "chat|models", real=real)


def test_the_usage_api_conforms_to_its_document(gateway: Gateway, tmp_path: Path) -> None:
    run(tmp_path, gateway.url, gateway.mint(Scope.READ), "--include-path-regex", "usage")


def test_the_management_api_conforms_to_its_document(gateway: Gateway, tmp_path: Path) -> None:
    run(
        tmp_path,
        gateway.url,
        admin_keys.mint("fuzz").secret,
        document=MANAGEMENT_PATH,
        # What is deleted is shown as disabled or revoked. Wrong keys are soon answered 429; they have
        # tests/accounts/api/test_access.py.
        left_out=("use_after_free", "ignored_auth", "missing_required_header"),
    )


def test_the_speech_surface_conforms_to_its_document(gateway: Gateway, tmp_path: Path) -> None:
    client = speech_account(gateway)
    (tmp_path / "clip").write_text(CLIP)
    real = {"SVC_FUZZ_VOICE": "ava", "SVC_FUZZ_CLIP": str(tmp_path / "clip")}
    # The stream is a WebSocket's, and has tests/fuzz/test_websocket.py.
    run(tmp_path, client.url, client.key, "--exclude-path-regex", "stream$", real=real)
