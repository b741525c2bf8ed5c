"""Composes one answer: its reasoning, its text and its tool calls.

The whole answer is composed before the first token is sent, from the request alone, so that the
same request always gets the same text.
"""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from core.ids import uuid7_hex
from inference.chat.tokenizers import Piece, Tokenizer
from simulators.chat.answers.hints import Hints, hints_in, words
from simulators.chat.answers.schema_values import UnfitSchema, value_for
from simulators.chat.options import BadDirective, Directive, read_directive
from simulators.chat.wire import (
    ChatBody,
    Logprobs,
    Message,
    NamedToolChoice,
    ResponseFormat,
    TokenLogprob,
    Tool,
    TopLogprob,
    bad_request,
)

_SAY_NOTHING = frozenset(
    words(
        """about after also and another answer argument arguments based before call called calls check
    create current details display does every fetch find finds first float from function given
    have help information integer into list look make more name need number object only other
    output parameter parameters please provide provided result results retrieve return returned
    returns search show some specific specified string than that their them then there these they
    this those tool tools update used user using value values what when where which will with
    would your"""
    )
)
_SHORTEST_NAME_WORD = 4
_SHORTEST_DESCRIPTION_WORD = 5


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the answer; ``arguments`` is compact JSON."""

    id: str
    name: str
    arguments: str


def choose_calls(body: ChatBody, hints: Hints) -> tuple[Call, ...]:
    """Choose the calls of the answer; none when it is a text.

    Raises ``Rejection`` when the parameters of a tool allow no value.
    """
    chosen = _chosen(body, hints)
    if body.parallel_tool_calls is False:
        chosen = chosen[:1]
    return tuple(_call(tool, hints.turned(place)) for place, tool in enumerate(chosen))


def _chosen(body: ChatBody, hints: Hints) -> list[Tool]:
    tools = body.tools or []
    if not tools or body.tool_choice == "none":
        return []
    if isinstance(body.tool_choice, NamedToolChoice):
        wanted = body.tool_choice.function.name
        return [tool for tool in tools if tool.function.name == wanted][:1]
    mentioned = [tool for tool in tools if is_mentioned(tool, hints)]
    if body.tool_choice == "required":
        return mentioned or tools[:1]
    return mentioned if body.messages[-1].role == "user" else []


def is_mentioned(tool: Tool, hints: Hints) -> bool:
    """Whether the text names the tool, or uses a distinctive word of its name or description."""
    function = tool.function
    if hints.mention(function.name):
        return True
    telling = {word for word in words(function.name) if len(word) >= _SHORTEST_NAME_WORD}
    telling |= {
        word
        for word in words(function.description or "")
        if len(word) >= _SHORTEST_DESCRIPTION_WORD
    }
    said = {word.removesuffix("s") for word in words(hints.text)}
    return any(word.removesuffix("s") in said for word in telling - _SAY_NOTHING)


def _call(tool: Tool, hints: Hints) -> Call:
    schema = tool.function.parameters or {"type": "object", "properties": {}}
    try:
        arguments = value_for({"type": "object", **schema}, hints)
    except UnfitSchema as error:
        raise bad_request(f"Tool {tool.function.name}: {error}", "tools") from None
    return Call(
        id=f"call_{uuid7_hex()}",
        name=tool.function.name,
        arguments=msgspec.json.encode(arguments).decode(),
    )


_OTHERS = (
    " the", " a", " to", " of", " and", " in", " is", " it", " that", " for", " on", " with",
    " as", " was", " at", " by", " an", " be", " this", " are", " or",
)  # fmt: skip


def logprobs_of(body: ChatBody, *steps: Step) -> Logprobs | None:
    """Make the ``logprobs`` of a choice for the content among ``steps``; None unless requested."""
    if not body.logprobs:
        return None
    return Logprobs(
        [_token(step.text, body.top_logprobs or 0) for step in steps if step.part is Part.CONTENT]
    )


def _token(text: str, alternatives: int) -> TokenLogprob:
    chosen = -(zlib.crc32(text.encode()) % 900) / 1000 - 0.001
    others = [other for other in _OTHERS if other != text]
    top = [TopLogprob(text, chosen, list(text.encode()))]
    top += [
        TopLogprob(other, round(chosen - 1.5 - 0.25 * place, 3), list(other.encode()))
        for place, other in enumerate(others)
    ]
    return TokenLogprob(text, chosen, list(text.encode()), top[:alternatives])


_OPENINGS = (
    "Here is a short answer about “{topic}”.",
    "You asked about “{topic}”.",
    "Let me help with “{topic}”.",
)
_SENTENCES = (
    "The main point is simpler than it looks at first.",
    "It helps to begin with what is already known.",
    "Small steps are easier to check than large ones.",
    "Most of the work is in asking the right question.",
    "A second look often finds what the first one missed.",
    "There is more than one good way to go about it.",
    "It is worth writing down what was decided, and why.",
    "The details depend on where it is going to be used.",
)
_THOUGHTS = (
    "The user wants a clear answer.",
    "First I should look at what is being asked.",
    "Then I can put the main points in order.",
    "A short reply is enough here.",
)
_SAY = re.compile(r"\bsay:[ \t]?(.*)", re.IGNORECASE | re.DOTALL)
_THINK = re.compile(r"\bthink\b", re.IGNORECASE)
_TOPIC_PIECES = 12
_USUAL_THOUGHTS = 2


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


class Part(StrEnum):
    REASONING = "reasoning"
    CONTENT = "content"
    CALL = "call"
    ARGUMENTS = "arguments"


@dataclass(frozen=True, slots=True)
class Step:
    """The content of one frame: ``text`` of ``tokens`` tokens; ``call`` is the tool call's index."""

    part: Part
    text: str
    tokens: int
    call: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The steps of an answer in order, the tool calls that they make up, and its finish reason."""

    steps: tuple[Step, ...]
    calls: tuple[Call, ...]
    finish: Finish


@dataclass(frozen=True, slots=True)
class Ask:
    """The last message of the user: its text without the directive, and the directive."""

    text: str
    directive: Directive


def read_ask(body: ChatBody) -> Ask:
    """Read the last message of the user. Raises ``Rejection`` for an invalid directive."""
    places = [place for place, message in enumerate(body.messages) if message.role == "user"]
    if not places:
        return Ask("", Directive())
    try:
        return Ask(*read_directive(body.messages[places[-1]].text))
    except BadDirective as error:
        raise bad_request(str(error), f"messages[{places[-1]}].content") from None


def compose(body: ChatBody, ask: Ask, tokenizer: Tokenizer, cap: int | None) -> Answer:
    """Compose the answer to ``body``, cut at its stop sequences and at ``cap`` tokens.

    Raises ``Rejection`` when a schema in the request allows no value.
    """
    dice = random.Random(_seed(body))  # noqa: S311  # picks sentences, guards nothing
    calls = () if _SAY.search(ask.text) else choose_calls(body, hints_in(ask.text))
    steps = _reasoning(ask, tokenizer, dice)
    if calls:
        steps += _spelled(calls, tokenizer)
    else:
        steps += _content(_text(body, ask, tokenizer, dice), body.stop_sequences, tokenizer)
    answer = Answer(tuple(steps), calls, Finish.TOOL_CALLS if calls else Finish.STOP)
    return _capped(answer, cap)


def _seed(body: ChatBody) -> str:
    return f"{body.seed} {[(message.role, message.text) for message in body.messages]}"


def _reasoning(ask: Ask, tokenizer: Tokenizer, dice: random.Random) -> list[Step]:
    wanted = ask.directive.reasoning
    if wanted is not None:
        pieces = _prose(_THOUGHTS, wanted, tokenizer, dice)
    elif _THINK.search(ask.text):
        pieces = tokenizer.cut(" ".join(dice.sample(_THOUGHTS, _USUAL_THOUGHTS)))
    else:
        pieces = []
    return [Step(Part.REASONING, piece.text, piece.tokens) for piece in pieces]


def _spelled(calls: tuple[Call, ...], tokenizer: Tokenizer) -> list[Step]:
    steps = []
    for index, call in enumerate(calls):
        steps.append(Step(Part.CALL, call.name, tokenizer.count(call.name), index))
        steps += [
            Step(Part.ARGUMENTS, piece.text, piece.tokens, index)
            for piece in tokenizer.cut(call.arguments)
        ]
    return steps


def _content(text: str, stops: list[str], tokenizer: Tokenizer) -> list[Step]:
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    pieces = tokenizer.cut(text[: min(ends)] if ends else text)
    return [Step(Part.CONTENT, piece.text, piece.tokens) for piece in pieces]


def _text(body: ChatBody, ask: Ask, tokenizer: Tokenizer, dice: random.Random) -> str:
    if said := _SAY.search(ask.text):
        return said[1]
    if body.response_format and body.response_format.type != "text":
        return _json_text(body.response_format, ask)
    if ask.directive.tokens is not None:
        pieces = _prose(_SENTENCES, ask.directive.tokens, tokenizer, dice)
        return "".join(piece.text for piece in pieces)
    if body.messages[-1].role == "tool":
        return _report(body.messages)
    topic = "".join(tokenizer.pieces(ask.text)[:_TOPIC_PIECES]).strip() or "your request"
    opening = dice.choice(_OPENINGS).format(topic=topic)
    return " ".join([opening, *dice.sample(_SENTENCES, 2)])


def _json_text(form: ResponseFormat, ask: Ask) -> str:
    if form.type == "json_object" or form.json_schema is None or form.json_schema.schema is None:
        return msgspec.json.encode({"answer": ask.text[:200], "ok": True}).decode()
    try:
        value = value_for(form.json_schema.schema, hints_in(ask.text))
    except UnfitSchema as error:
        raise bad_request(str(error), "response_format") from None
    return msgspec.json.encode(value).decode()


def _report(messages: list[Message]) -> str:
    """Return a text with the results of the tools at the end of the conversation."""
    results: list[str] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results.insert(0, message.text.strip()[:400].rstrip("."))
    return f"Here is what I found: {'; '.join(results)}."


def _prose(
    sentences: tuple[str, ...], length: int, tokenizer: Tokenizer, dice: random.Random
) -> list[Piece]:
    """Return ``length`` tokens of ``sentences``, repeated in a random order."""
    order = dice.sample(sentences, len(sentences))
    once = " ".join(order)
    times = -(-length // max(1, tokenizer.count(once)))
    pieces = tokenizer.cut(" ".join([once] * (times + 1)))
    return pieces[:length]


def _capped(answer: Answer, cap: int | None) -> Answer:
    """Cut ``answer`` at ``cap`` tokens; its finish reason is then ``length``."""
    if cap is None:
        return answer
    room = cap
    for place, step in enumerate(answer.steps):
        room -= step.tokens
        if room < 0:
            return replace(answer, steps=answer.steps[:place], finish=Finish.LENGTH)
    return answer
