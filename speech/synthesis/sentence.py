"""One sentence becomes sound: its words prepared for the engine, its pauses as silence."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Final

from core.errors import ApiError
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH, EdgeTrimmer, Joiner, silence
from speech.engines import (
    Engine,
    EngineError,
    EngineFull,
    EngineTimeout,
    SpokenWord,
    Utterance,
)
from speech.engines.sanitize import unread_letters
from speech.errors import SpeechFailed, SpeechFull, SpeechTimedOut, UnreadableText
from speech.synthesis.script import LONG_READING, Sentence
from speech.synthesis.stand_ins import stood_in
from speech.synthesis.text_process import TextProcess
from speech.text import markdown, preparation, tags
from speech.text.language import Language
from speech.text.normalise.characters import cleaned
from speech.text.normalise.locale import region_of
from speech.text.pronunciations import NO_PRONUNCIATIONS, Growth, Lexicon, StandIn
from speech.text.sentences import clauses
from speech.text.ssml_elements import FASTEST, SLOWEST
from speech.text.tags import Pause, Phonemes, Rate, Sound, has_words
from speech.voices.snapshot import VoiceRef

LONGEST_UTTERANCE: Final = 300
"""Code points of one utterance; a longer sentence is cut at clauses."""

_BYTES_PER_SECOND: Final = SAMPLE_RATE * SAMPLE_WIDTH

_SIGNS = re.compile(r"[^\w\s]+")


class EngineClock:
    """Measures the wall time of engine calls in seconds; overlapping calls count once."""

    def __init__(self) -> None:
        self._running = 0
        self._since = 0.0
        self._total = 0.0
        self.first_audio: float | None = None
        """The ``perf_counter`` time of the first sound."""
        self.until_first = 0.0
        """The total at the first sound."""

    @property
    def total(self) -> float:
        """Seconds so far, running calls included."""
        return self._total + (time.perf_counter() - self._since if self._running else 0.0)

    def audio_arrived(self) -> None:
        """Record the time of the first sound; later calls change nothing."""
        if self.first_audio is None:
            self.first_audio = time.perf_counter()
            self.until_first = self.total

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time in this context as time of an engine."""
        if not self._running:
            self._since = time.perf_counter()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._total += time.perf_counter() - self._since


@dataclass(frozen=True, slots=True)
class Speaker:
    """The voice, its engine, the manner, and the organization that queues for processes and engines.

    ``texts`` prepares long texts. ``rate`` is a factor on the voice's pace; ``instructions``,
    ``is_long``, ``is_interactive`` and ``request_id`` as in ``Utterance``. ``lexicon`` has the organization's
    pronunciations, ``growth`` what they may add to the whole text.
    """

    voice: VoiceRef
    engine: Engine
    texts: TextProcess
    organization_id: str
    rate: float = 1.0
    instructions: str = ""
    is_long: bool = False
    is_interactive: bool = False
    lexicon: Lexicon = NO_PRONUNCIATIONS
    growth: Growth = field(default_factory=Growth)
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Words that an engine gets at once; ``stand_ins`` as in ``Utterance``."""

    text: str
    stand_ins: tuple[StandIn, ...] = ()


Part = Words | Pause | Rate


async def speak_sentence(
    sentence: Sentence,
    speaker: Speaker,
    clock: EngineClock,
    words: list[SpokenWord] | None = None,
) -> AsyncGenerator[bytes, None]:
    """``read_sentence``, then ``speak_parts``; raises what they raise."""
    async with aclosing(
        speak_parts(await read_sentence(sentence, speaker), speaker, clock, words)
    ) as sound:
        async for piece in sound:
            yield piece


async def speak_parts(
    parts: list[Part],
    speaker: Speaker,
    clock: EngineClock,
    words: list[SpokenWord] | None = None,
) -> AsyncGenerator[bytes, None]:
    """Yield the sound of ``read_sentence`` as PCM pieces, none empty; each part starts and ends at 0.

    The silence that an engine leaves around a part is removed, so that pauses last as long as they
    should on every engine. Nothing is yielded before there is sound. ``words`` gets the words with
    their seconds in the sound, those of a part at its end.

    Raises ``SpeechFailed``, ``SpeechTimedOut`` or ``SpeechFull`` when the engine does, and
    ``UnreadableText`` when it made no sound.
    """
    size = 0
    async with aclosing(_spoken(parts, speaker, clock, words is not None)) as pieces:
        async for piece in pieces:
            if isinstance(piece, bytes):
                size += len(piece)
                yield piece
            elif words is not None:
                words += piece.ending_at(size)


@dataclass(frozen=True, slots=True)
class _PartWords:
    """The words of a part with their seconds in its sound, which has ``size`` bytes."""

    words: list[SpokenWord]
    size: int

    def ending_at(self, size: int) -> list[SpokenWord]:
        """The words in a sound whose first ``size`` bytes end with the part's."""
        since, until = (size - self.size) / _BYTES_PER_SECOND, size / _BYTES_PER_SECOND

        def within(seconds: float) -> float:
            # The silence around the part was removed.
            return min(max(since, since + seconds), until)

        return [SpokenWord(word.text, within(word.start), within(word.end)) for word in self.words]


async def _spoken(
    parts: list[Part], speaker: Speaker, clock: EngineClock, is_timed: bool
) -> AsyncGenerator[bytes | _PartWords, None]:
    """Yield the sound of ``parts``; if ``is_timed``, the words of each after its sound."""
    before: list[Pause] = []
    is_heard = False
    rate = 1.0
    for part in parts:
        if isinstance(part, Rate):
            rate = part.factor
            continue
        if isinstance(part, Pause):
            if not is_heard:
                before.append(part)
            elif still := silence(part.seconds):
                yield still
            continue
        sound = _sound(_utterance(part, speaker, rate), speaker.engine, clock, is_timed)
        async with aclosing(sound) as pieces:
            async for piece in pieces:
                is_heard = True
                while before:
                    if still := silence(before.pop(0).seconds):
                        yield still
                yield piece
    if not is_heard:
        raise UnreadableText


async def _sound(
    utterance: Utterance, engine: Engine, clock: EngineClock, is_timed: bool
) -> AsyncGenerator[bytes | _PartWords, None]:
    """Yield the engine's sound without the silence around it; nothing if all of it is silent."""
    trimmer, joiner = EdgeTrimmer(), Joiner()
    size = cut = 0
    words: list[SpokenWord] = []
    async with aclosing(_timed(engine, utterance, clock, is_timed)) as pieces:
        async for piece in pieces:
            if isinstance(piece, SpokenWord):
                words.append(piece)
            elif sound := trimmer.piece(piece):
                size, cut = size + len(sound), trimmer.cut
                clock.audio_arrived()
                if ready := joiner.piece(sound):
                    yield ready
    if not size:
        return
    end = trimmer.end()
    if rest := joiner.piece(end) + joiner.end_part():
        yield rest
    if is_timed:
        yield _PartWords([word.later(-cut / SAMPLE_RATE) for word in words], size + len(end))


async def _timed(
    engine: Engine, utterance: Utterance, clock: EngineClock, is_timed: bool
) -> AsyncGenerator[bytes | SpokenWord, None]:
    """Yield the engine's sound, timed by ``clock``; raise its failures as ``ApiError``."""
    speak = engine.speak_timed if is_timed else engine.speak
    async with aclosing(speak(utterance)) as pieces:
        while True:
            try:
                with clock.running():
                    piece = await anext(pieces, None)
            except EngineError as error:
                raise _failure(error) from error
            if piece is None:
                return
            yield piece


def _failure(error: EngineError) -> ApiError:
    kind: type[SpeechFull | SpeechTimedOut | SpeechFailed] = SpeechFailed
    if isinstance(error, EngineFull):
        kind = SpeechFull
    elif isinstance(error, EngineTimeout):
        kind = SpeechTimedOut
    return kind().because(str(error))


def _utterance(words: Words, speaker: Speaker, rate: float) -> Utterance:
    voice, clone = speaker.voice, speaker.voice.clone
    return Utterance(
        text=words.text,
        stand_ins=words.stand_ins,
        language=voice.language,
        engine_voice=voice.engine_voice,
        rate=max(SLOWEST, min(FASTEST, speaker.rate * rate)),
        instructions=speaker.instructions,
        profile=None if clone is None else clone.profile,
        mix=None if clone is None else clone.mix,
        clone_id=None if clone is None else clone.id,
        organization_id=speaker.organization_id,
        is_long=speaker.is_long,
        is_interactive=speaker.is_interactive,
        request_id=speaker.request_id,
    )


async def read_sentence(sentence: Sentence, speaker: Speaker) -> list[Part]:
    """The utterances of the sentence, the silences before and between them, and their pace.

    Raises ``UnreadableText`` when there is nothing in it that the voice can speak.
    """
    parts: list[Part] = [Pause(sentence.lead)] if sentence.lead else []
    parts += [Rate(sentence.rate)] if sentence.rate != 1 else []
    words: list[str] = []
    speaker.growth.begin(sentence.characters)
    sentence, stand_ins = stood_in(sentence, speaker.growth, takes_ipa=speaker.voice.takes_ipa)
    speakable = False
    unread: str | None = None
    start = 0
    place = sentence.place
    for offset, mark in (*sentence.marks, (len(sentence.text), None)):
        plain, place = markdown.read(sentence.text[start:offset], place, sentence.text[offset:])
        start = max(start, offset)
        if speaker.lexicon:
            plain = speaker.lexicon.replaced(plain, stand_ins, speaker.growth)
        # An entity such as &nbsp; has letters, and means none.
        if has_words(meant := cleaned(plain)):
            letters = await _unread_letters(meant, speaker)
            speakable = speakable or letters is None
            unread = unread or letters
            plain = await prepared(plain, speaker)
        words.append(plain)
        if isinstance(mark, Sound):
            if spelled := _spelled(mark.name.value, speaker.voice):
                speakable = True
                words.append(f" {spelled} ")
            continue
        if speakable:
            parts += _utterances("".join(words), stand_ins)
        words, speakable = [], False
        if mark is not None and not isinstance(mark, Phonemes):
            parts.append(mark)
    if not any(isinstance(part, Words) for part in parts):
        raise UnreadableText(unread)
    return parts


async def _unread_letters(text: str, speaker: Speaker) -> str | None:
    """``unread_letters`` of ``text`` if the voice can read no word of it.

    What a speech server reads is not known here. A letter such as π may have a word; a sign is no
    word, though it may be read as one.
    """
    if speaker.voice.backend is not None or (letters := unread_letters(text)) is None:
        return None
    words = await prepared(_SIGNS.sub(" ", text), speaker)
    return letters if unread_letters(words) is not None else None


def _utterances(text: str, stand_ins: list[StandIn]) -> Iterator[Words | Pause]:
    """Cut ``text`` at clauses into parts for an engine, with the pauses lost by the cuts."""
    stillness = 0.0
    for part in filter(None, map(str.strip, clauses(text, LONGEST_UTTERANCE))):
        if stillness:
            yield Pause(stillness)
        yield Words(part, tuple(one for one in stand_ins if one.stand_in in part))
        stillness = tags.after_part(part)


def _spelled(sound: str, voice: VoiceRef) -> str | None:
    """The backend's spelling of a sound; the embedded engine has none."""
    return None if voice.backend is None else voice.backend.sounds.get(sound)


async def prepared(text: str, speaker: Speaker) -> str:
    """Prepare words for an engine: numbers and signs written out, Hindi in Devanagari.

    A speech server that normalizes text itself gets numbers and signs as written.
    """
    voice = speaker.voice
    language = Language(voice.language)
    region = region_of(voice.engine_voice, language)
    only_clean = voice.backend is not None and voice.backend.normalizes_text
    if language is Language.ENGLISH and len(text) <= LONG_READING:
        return preparation.prepared(text, language, region, only_clean=only_clean)
    # Hindi of any length, because its lexicon takes 50 MB and a second to load.
    return await speaker.texts.prepare(
        text, language, region, only_clean=only_clean, organization_id=speaker.organization_id
    )
