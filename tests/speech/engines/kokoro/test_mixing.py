"""The mix of the neural engine's voices that is nearest to a speaker, by arithmetic and by ear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from speech.audio.equaliser import equalised
from speech.audio.pcm import SAMPLE_RATE, pcm_bytes, samples
from speech.audio.speaker import BAND_CENTRES, Speaker, analyse, ltas_distance
from speech.engines import StyleMix
from speech.engines.kokoro.mixing import (
    HIGHEST_PITCH,
    LOUDNESS,
    LOWEST_PITCH,
    MOST_STYLES,
    calibrate,
    first_mix,
)
from tests.support.builders import clips

NAN = float("nan")


def speaker(tilt: float, f0: float | None, *cut: int) -> Speaker:
    """One whose spectrum falls by ``tilt`` dB a band, without the bands ``cut``."""
    ltas = np.array([tilt * (9.0 - band) for band in range(len(BAND_CENTRES))])
    ltas[list(cut)] = NAN
    return Speaker(f0, 2.0, np.zeros(513), ltas, 5.0)


VOICES = {
    "af_heart": speaker(1.0, 200.0),
    "af_sky": speaker(2.0, 220.0),
    "bf_emma": speaker(1.5, 180.0),
    "am_adam": speaker(1.0, 100.0),
    "am_onyx": speaker(2.0, 90.0),
    "bm_lewis": speaker(1.5, 120.0),
    "bm_fable": speaker(0.5, 140.0),
}


@pytest.mark.parametrize(
    ("wanted", "voices", "pitch"),
    [
        (speaker(1.5, 180.0), VOICES, 1.0),
        (speaker(1.5, 180.0, 17, 18), VOICES, 1.0),  # as over a telephone
        (speaker(1.5, 198.0), {"bf_emma": VOICES["bf_emma"]}, 1.1),
        (speaker(1.5, None), {"bf_emma": VOICES["bf_emma"]}, 1.0),  # noise
        (speaker(1.5, 60.0), {"bf_emma": VOICES["bf_emma"]}, LOWEST_PITCH),
        (speaker(1.5, 500.0), {"bf_emma": VOICES["bf_emma"]}, HIGHEST_PITCH),
        (speaker(1.5, 180.0), {"bf_emma": speaker(1.5, None)}, 1.0),
        (speaker(1.5, 180.0), {**VOICES, "af_nicole": speaker(1.5, None)}, 1.0),  # it whispers
    ],
)
def test_the_voice_that_the_speaker_is_like_is_taken(
    wanted: Speaker, voices: dict[str, Speaker], pitch: float
) -> None:
    mix = first_mix(wanted, voices)

    assert mix.styles[0][0] == "bf_emma"
    assert mix.styles[0][1] > 0.9
    assert mix.pitch == pytest.approx(pitch, abs=0.02)
    assert not any(mix.eq_db)


def test_a_speaker_between_voices_gets_few_of_them_whose_shares_are_1_and_sink() -> None:
    mix = first_mix(speaker(1.2, 150.0), VOICES)

    shares = [share for _, share in mix.styles]
    assert 2 <= len(shares) <= MOST_STYLES
    assert sum(shares) == pytest.approx(1, abs=0.001)
    assert shares == sorted(shares, reverse=True)
    assert mix.pitch == pytest.approx(1.0, abs=0.05)


def test_calibration_brings_pitch_timbre_and_loudness_to_the_speakers() -> None:
    spoken: list[StyleMix] = []

    def buzzing(f0: float, gain: float, gains: Sequence[float]) -> bytes:
        signal = samples(pcm_bytes(clips.voice(5.0, SAMPLE_RATE, round(f0, 2)) * gain))
        return pcm_bytes(equalised(signal, BAND_CENTRES, gains, SAMPLE_RATE))

    def speak(_: str, mix: StyleMix) -> bytes:
        spoken.append(mix)
        f0 = np.exp(sum(share * np.log(VOICES[name].f0 or 1) for name, share in mix.styles))
        gains = mix.eq_db or (0.0,) * len(BAND_CENTRES)
        return buzzing(1.1 * float(f0) * mix.pitch, 0.2 * mix.gain, gains)

    def heard(pcm: bytes) -> Speaker:
        return analyse(samples(pcm).astype(np.float32) / np.float32(32768), SAMPLE_RATE)

    wanted = heard(buzzing(150.0, 0.5, np.linspace(6, -6, len(BAND_CENTRES)).tolist()))
    known = {"af_heart": VOICES["af_heart"]}
    mix = calibrate(wanted, ["af_heart", "am_adam"], speak, known)

    assert [each.styles for each in spoken[:1]] == [(("am_adam", 1.0),)]
    assert (len(spoken), set(known)) == (4, {"af_heart", "am_adam"})
    made = speak("", mix)
    assert heard(made).f0 == pytest.approx(150.0, rel=0.03)
    plain = heard(speak("", replace(mix, eq_db=())))
    assert ltas_distance(wanted, heard(made)) < 0.7 * ltas_distance(wanted, plain)
    assert np.sqrt(np.mean((samples(made) / 32768) ** 2)) == pytest.approx(LOUDNESS, rel=0.15)
