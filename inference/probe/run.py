"""A whole probe: every step in turn, none of which hides the others."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from inference.dialects import KeepAlive
from inference.probe import abilities, chat, context, habits
from inference.probe.client import NoAnswer, ProbeClient, Target
from inference.probe.connect import Connected, connect
from inference.probe.findings import Found, ModelFindings, ServerFindings

MOST_MODELS: Final = 16
"""How many of a server's models are tried when none is named."""
Value = TypeVar("Value")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Tried:
    """What came of a model, and how it is asked from then on."""

    findings: ModelFindings
    model: chat.Model


async def probe(
    target: Target, models: Sequence[str] = (), tell: Tell = lambda _: None
) -> ServerFindings:
    """Ask the server at ``target`` about ``models``, or about those that it lists.

    ``tell`` is given a line before what may take a while. Raises nothing that a server causes:
    what went wrong is in the findings.
    """
    try:
        connected = await connect(target)
    except NoAnswer as error:
        return _not_connected(target, str(error))
    names = list(models) or list(connected.models)[:MOST_MODELS]
    async with ProbeClient(connected.target) as client:
        tried = []
        for name in names:
            tell(f"asking {connected.target.base_url} about {name}")
            tried.append(await _try(client, name, connected.models.get(name)))
        kept: Found[KeepAlive] = Found(None, "not tried, because chat does not work")
        working = next((each.model for each in tried if each.findings.works), None)
        if working is not None:
            kept = await _step(habits.keep_alive(working))
    return ServerFindings(
        base_url=connected.target.base_url,
        connection=Found(True, connected.words),
        listing=_listing(connected, len(names)),
        listed=list(connected.models),
        keep_alive=kept,
        models=[each.findings for each in tried],
    )


async def _try(client: ProbeClient, name: str, listed: Any) -> _Tried:
    """Ask about one model; ``listed`` is the server's own description of it."""
    first = await chat.first_answer(client, name)
    model = chat.Model(client, name, first.cap_field)
    seen = None
    try:
        stream, seen = await chat.streamed(model)
    except NoAnswer as error:
        stream = Found(False, str(error))
    if not first.found.value and not stream.value:
        return _Tried(_no_chat(name, first.found, stream), model)
    findings = ModelFindings(
        name=name,
        chat=first.found,
        stream=stream,
        usage=chat.usage(first.usage, seen),
        output_cap=await _step(chat.output_cap(model)),
        running_usage=await _step(chat.running_usage(model)),
        tool_calling=await _step(abilities.tool_calling(model)),
        structured_output=await _step(abilities.structured_output(model)),
        context_length=await _step(context.context_length(client, name, listed)),
        abort=await _step(habits.abort(model, first.seconds)),
    )
    return _Tried(findings, model)


async def _step(step: Coroutine[Any, Any, Found[Value]]) -> Found[Value]:
    """What ``step`` found; nothing, with the reason, when it failed."""
    try:
        return await step
    except NoAnswer as error:
        return Found(None, str(error))


def _listing(connected: Connected, tried: int) -> Found[bool]:
    if not connected.lists:
        return Found(False, "it lists no models; name one")
    count = len(connected.models)
    left_out = f"; {tried} tried" if tried < count else ""
    return Found(True, f"{count} model{'' if count == 1 else 's'}{left_out}")


def _not_connected(target: Target, reason: str) -> ServerFindings:
    return ServerFindings(
        base_url=target.base_url.rstrip("/"),
        connection=Found(False, reason),
        listing=Found(None, "not tried"),
        listed=[],
        keep_alive=Found(None, "not tried"),
        models=[],
    )


def _no_chat(name: str, chat: Found[bool], stream: Found[bool]) -> ModelFindings:
    words = "not tried, because chat does not work"
    return ModelFindings(
        name=name,
        chat=chat,
        stream=stream,
        usage=Found(None, words),
        output_cap=Found(None, words),
        running_usage=Found(None, words),
        tool_calling=Found(None, words),
        structured_output=Found(None, words),
        context_length=Found(None, words),
        abort=Found(None, words),
    )
