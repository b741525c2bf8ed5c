"""No regular expression of the product takes more than linear time, whatever it reads.

Each is applied to texts that repeat a unit, as those do that make an expression read the same
characters again and again. A text that takes some time is tried again at half its length: twice the
length may take less than three times as long.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import FrameType
from typing import NamedTuple

import pytest

from speech.synthesis.script import LONGEST_SENTENCE
from speech.wire import LONGEST_SESSION
from tests.support.fuzzing.expressions import Expression, all_expressions, calls

LONGEST = 65_536
"""Characters of a text from outside, where nothing says otherwise: as much of a model server's error
is read."""
NOTICED = 0.008
"""Seconds below which a text is not tried at half its length: whatever reads 64 KB so quickly may
do so."""
ENDLESS = 2.0
"""Seconds of processor time after which an expression is interrupted."""
MOST = 3.0
"""Times as long for twice the length."""


class Bound(NamedTuple):
    """The most characters that the product gives to an expression, and what holds that."""

    characters: int
    why: str


SESSION = Bound(LONGEST_SESSION, "the text of a session; of a request, 4096 (speech/wire.py)")
SENTENCE = Bound(
    2 * LONGEST_SENTENCE,
    "a sentence is cut at 4096 (speech/synthesis/script.py); figures in words are longer",
)
BOUNDS = {
    "speech.text.normalise.": SENTENCE,
    "speech.text.kinds.": SENTENCE,
    "speech.text.hindi.": SENTENCE,
    "speech.engines.": SENTENCE,
    "speech.text.": SESSION,
}
"""By the beginning of the names, the first one that fits. Long texts are read in a process of their
own (speech/synthesis/text_process.py)."""

AT_PLACES = {
    "speech.text.sentences:_IN_BRACKETS": "matched behind each end of a sentence, which is no space"
}
"""Expressions that are matched at places which the code chooses, so that a search would be stricter
than the product."""

BUILT = {
    ("speech.engines.espeak.mnemonics", "_reader"): "its symbols are in tables",
    ("speech.text.hindi.choices", "_after"): "its words are in the table of the module",
    ("speech.text.hindi.choices", "_before"): "its words are in the table of the module",
    ("speech.text.normalise.rules", "rule"): "its rules are in tables",
    ("simulators.chat.answers.hints", "mention"): "a phrase of the table, quoted",
    ("simulators.chat.answers.schema_values", "string_value"): "from the table of the module",
}
"""Functions that make an expression of variables, and where these are found."""

UNITS = (
    *("a", "A", "0", " ", "\t", "\n", ".", ",", "-", "_", "/", "+", "@", ":", "*", "=", "~", "'"),
    *('"', "`", "(", "[", "{", "<", ">", "\\", "%", "$", "#", "|", "?", "é", "क", "१", "\xa0"),
    *("+/", "-/", "a/", "/a", "a.", "1.", "1,", "0 ", "a ", "A ", "a-", "a@", "://", "\\\\", "ab1"),
    *("<a ", "[a](", " \n", "A.B.", "M. ", "12:", "a'", "x=", "] ", "num_ctx "),
)
ENDS = ("", "!\0")


def own_units(pattern: str) -> list[str]:
    """Return the words and signs that the expression itself names."""
    words = re.findall(r"[A-Za-z]{2,}|[^\sA-Za-z0-9\\()\[\]?*+|{}^$.]", pattern)
    return list(dict.fromkeys(words))[:8]


class Interrupted(Exception):
    """The expression took longer than ``ENDLESS``."""


@contextmanager
def interrupted() -> Iterator[None]:
    """Raise ``Interrupted`` in the block after ``ENDLESS`` seconds of its processor time.

    Expressions look for signals while they run.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(expression: Expression, text: str) -> float:
    """Measure this thread's processor time; ``ENDLESS`` when it was interrupted."""
    begun = time.thread_time()
    try:
        with interrupted():
            expression.run(text)
    except Interrupted:
        return ENDLESS
    return time.thread_time() - begun


def text_of(unit: str, length: int, end: str) -> str:
    return (unit * (length // len(unit) + 1))[:length] + end


def bound_of(name: str) -> int:
    return next(
        (bound.characters for start, bound in BOUNDS.items() if name.startswith(start)), LONGEST
    )


def too_slow(expression: Expression, longest: int) -> str | None:
    """Return the unit of a text that takes longer than its length explains, or None."""
    pattern = expression.pattern.pattern
    own = own_units(pattern if isinstance(pattern, str) else pattern.decode("latin-1"))
    for unit in dict.fromkeys((*UNITS, *own)):
        for end in ENDS:
            if is_too_slow(expression, unit, end, longest):
                return f"{expression.name}: {unit!r} * n + {end!r}"
    return None


def is_too_slow(expression: Expression, unit: str, end: str, longest: int) -> bool:
    # Exponential time shows at once.
    if seconds(expression, text_of(unit, 32, end)) > ENDLESS / 4:
        return True
    whole, half = text_of(unit, longest, end), text_of(unit, longest // 2, end)
    long = seconds(expression, whole)
    if long < NOTICED or long >= ENDLESS:
        return long >= ENDLESS
    short = seconds(expression, half)
    for _ in range(30):
        if long < NOTICED or long < MOST * short:
            return False
        # The least of some times, since others use the machine too.
        long = min(long, seconds(expression, whole))
        short = min(short, seconds(expression, half))
    return True


@cache
def found() -> list[Expression]:
    return [
        replace(each, method="match") if each.name in AT_PLACES else each
        for each in all_expressions()
    ]


PARTS = ("svc_project", "inference", "speech", "usage", "accounts", "core", "simulators", "route ")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", PARTS)
def test_every_expression_takes_linear_time(part: str) -> None:
    mine = [each for each in found() if each.name.startswith(part)]
    assert mine

    slow = [too_slow(each, bound_of(each.name)) for each in mine]

    assert [each for each in slow if each] == []


def test_every_expression_that_is_written_out_is_among_them() -> None:
    known = {each.pattern.pattern for each in found()}
    written = {each.pattern for each in calls() if each.pattern is not None}

    # The version is read from the changelog.
    assert {each for each in written - known if "CHANGELOG" not in str(each)} == set()


def test_every_function_that_builds_an_expression_is_known() -> None:
    built = {
        (each.module, each.function) for each in calls() if each.pattern is None and each.function
    }

    assert built == set(BUILT)


def test_every_name_of_the_tables_is_that_of_an_expression() -> None:
    names = [each.name for each in found()]

    assert [start for start in BOUNDS if not any(name.startswith(start) for name in names)] == []
    assert set(AT_PLACES) <= set(names)
    assert [name for name in names if not name.startswith(PARTS)] == []
