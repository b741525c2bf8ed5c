"""The tables of the speech surface: voices, speech servers, private clones and pronunciations."""

from speech.models.backends import SOUNDS, CloneMode, Delivery, SpeechBackend
from speech.models.clones import CloneAudio, CloneUpload, VoiceClone
from speech.models.pronunciations import LONGEST_WORD, WordPronunciation
from speech.models.voices import (
    LABELS,
    VOICE_ID,
    VOICE_ID_RULE,
    EmbeddedEngine,
    Voice,
    VoiceServer,
)
from speech.text.language import Language

__all__ = [
    "LABELS",
    "LONGEST_WORD",
    "SOUNDS",
    "VOICE_ID",
    "VOICE_ID_RULE",
    "CloneAudio",
    "CloneMode",
    "CloneUpload",
    "Delivery",
    "EmbeddedEngine",
    "Language",
    "SpeechBackend",
    "Voice",
    "VoiceClone",
    "VoiceServer",
    "WordPronunciation",
]
