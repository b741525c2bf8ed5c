"""A subprocess with espeak-ng that speaks one order per line, so that a crash ends only itself.

An order is JSON: ``text``, ``voice``, and for a clone ``pitch``, ``pitch_range``, ``warp``. The
answer is a line with the number of bytes, then 16-bit PCM at 22 050 Hz.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import espeakng_loader

SYNCHRONOUS, UTF8 = 2, 1


def overlay(directory: Path) -> Path:
    """A directory with links to espeak-ng's data, where voice files can be written."""
    original = Path(espeakng_loader.get_data_path())
    data = directory / "espeak-ng-data"
    (data / "voices" / "!v").mkdir(parents=True)
    for entry in original.iterdir():
        if entry.name != "voices":
            (data / entry.name).symlink_to(entry)
    for variant in (original / "voices" / "!v").iterdir():
        (data / "voices" / "!v" / variant.name).symlink_to(variant)
    return data / "voices" / "!v"


def voice_file(order: dict[str, Any]) -> str:
    shift = 1 + 0.5 * (order["pitch"] - 82) / 82 / 4
    formants = [f"formant {n} {100 * order['warp'] / shift:.1f} 100 100" for n in range(1, 9)]
    pitch = f"pitch {order['pitch']:.0f} {order['pitch_range']:.0f}"
    return "\n".join(["language variant", "name clone", pitch, *formants, "flutter 2", ""])


def main() -> None:
    directory = Path(tempfile.mkdtemp(prefix="svc-espeak-"))
    variants = overlay(directory)
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(SYNCHRONOUS, 200, str(directory).encode(), 0x8000)
    assert rate == 22_050, rate
    heard: list[bytes] = []

    def hear(wave: int | None, count: int, _events: int | None) -> int:
        if wave and count > 0:
            heard.append(ctypes.string_at(wave, 2 * count))
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(hear)
    library.espeak_SetSynthCallback(callback)
    for number, line in enumerate(sys.stdin):
        order = json.loads(line)
        voice = order["voice"]
        if "pitch" in order:
            name = f"clone{number}"
            (variants / name).write_text(voice_file(order))
            voice += "+" + name
        assert library.espeak_SetVoiceByName(voice.encode()) == 0, voice
        text = order["text"].encode() + b"\0"
        heard.clear()
        library.espeak_Synth(text, len(text), 0, 1, 0, UTF8, None, None)
        audio = b"".join(heard)
        sys.stdout.buffer.write(b"%d\n" % len(audio) + audio)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
