"""The orders that the server sends to its text process, and the answers. Both cross a pipe as JSON.

The types are plain data that msgspec checks while it decodes, so that nothing is run that a message
names, and a message of a thousand sentences takes a millisecond of the event loop.
"""

from __future__ import annotations

from typing import Final

import msgspec

from speech.synthesis.script import Script, ScriptReader, Sentence
from speech.text.language import Language
from speech.text.normalise.locale import Region
from speech.text.tags import TagError

READY_PAYLOAD: Final = b"texts"
"""What the process says when it takes orders."""


class Load(msgspec.Struct, frozen=True, tag=True):
    """Loads what orders need beside them; with ``hindi`` the Hindi lexicon too."""

    hindi: bool


class Parse(msgspec.Struct, frozen=True, tag=True):
    """Parses a whole text. The answer is a ``Script``."""

    text: str


class Feed(msgspec.Struct, frozen=True, tag=True):
    """Feeds ``text`` to ``reader``. The answer is ``Fed``."""

    reader: ScriptReader
    text: str


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Prepares words for an engine, as ``speech.text.preparation``. The answer is ``Prepared``."""

    text: str
    language: Language
    region: Region
    only_clean: bool


Order = Load | Parse | Feed | Prepare


class Loading(msgspec.Struct, frozen=True, tag=True):
    """The answer to ``Load``: it goes on beside the next orders."""


class Fed(msgspec.Struct, frozen=True, tag=True):
    """The reader after it was fed, and the sentences that were completed."""

    reader: ScriptReader
    sentences: list[Sentence]


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """Words as an engine gets them."""

    text: str


_TAG_ERRORS: Final[list[type[TagError]]] = [TagError, *TagError.__subclasses__()]
_BY_NAME: Final = {kind.__name__: kind for kind in _TAG_ERRORS}


class InvalidTags(msgspec.Struct, frozen=True, tag=True):
    """The ``TagError`` that an order raised, by the name of its class."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: TagError) -> InvalidTags:
        """The answer that stands for ``error``."""
        return cls(type(error).__name__, str(error))

    def error(self) -> TagError:
        """The error of the same class and message."""
        kind = _BY_NAME[self.kind]
        # Not by calling the class: each subclass makes its message from arguments of its own.
        return kind.__new__(kind, self.message)


Answer = Loading | Script | Fed | Prepared | InvalidTags
