"""Runs all steps of a probe in turn; a step that fails does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final, TypeVar

from inference.probe import chat, habits
from inference.probe.client import ProbeClient, ProbeError, Target
from inference.probe.connect import Connected, connect
from inference.probe.findings import Found, ModelFindings, ServerFindings
from inference.wire.dialects import KeepAlive

MOST_MODELS: Final = 16
"""Number of a server's models that are probed when none is named."""
Value = TypeVar("Value")
ReportProgress = Callable[[str], None]


@dataclass(frozen=True)
class _Tried:
    """A model with its findings."""

    findings: ModelFindings
    model: chat.Model


async def probe(
    target: Target,
    models: Sequence[str] = (),
    report: ReportProgress = lambda _: None,
    seconds: float | None = None,
) -> ServerFindings:
    """Probe ``models`` of the server at ``target``, or those that it lists.

    ``report`` gets a progress line before each model. Models that are not probed within ``seconds``, where
    it is given, are found not to work, with this as the reason. Raises no error that a server causes:
    failures are in the findings.
    """
    due = None if seconds is None else asyncio.get_running_loop().time() + seconds
    try:
        connected = await connect(target)
    except ProbeError as error:
        return _not_connected(target, str(error))
    names = list(models) or list(connected.models)[:MOST_MODELS]
    async with ProbeClient(connected.target) as client:
        tried = []
        for name in names:
            report(f"asking {connected.target.base_url} about {name}")
            trying = _try(client, name, connected.models.get(name))
            tried.append(await _by(due, trying, partial(_out_of_time, client, name, seconds)))
        working = [each.model for each in tried if each.findings.works]
        kept: Found[KeepAlive] = _not_tried()
        if working:
            trying_again = _step(True, habits.keep_alive, working[0])
            kept = await _by(due, trying_again, partial(_ended, seconds))
    return ServerFindings(
        base_url=connected.target.base_url,
        connection=Found(True, connected.words),
        listing=_listing(connected, len(names)),
        listed=list(connected.models),
        keep_alive=kept,
        models=[each.findings for each in tried],
    )


async def _by(due: float | None, work: Awaitable[Value], late: Callable[[], Value]) -> Value:
    """What ``work`` returns until ``due``, on the loop's clock; else what ``late`` does."""
    try:
        async with asyncio.timeout_at(due):
            return await work
    except TimeoutError:
        return late()


async def _try(client: ProbeClient, name: str, listed: Any) -> _Tried:
    """Probe one model; ``listed`` is the server's own description of it."""
    first = await chat.first_answer(client, name)
    model = chat.Model(client, name, first.cap_field)
    seen = None
    try:
        stream, seen = await chat.streamed(model)
    except ProbeError as error:
        stream = Found(False, str(error))
    streams, answers = bool(stream.value), bool(first.found.value)
    findings = ModelFindings(
        name=name,
        chat=first.found,
        stream=stream,
        usage=chat.usage(first.usage, seen) if streams and answers else _not_tried(),
        output_cap=await _step(streams, chat.output_cap, model),
        running_usage=await _step(streams, chat.running_usage, model),
        prefix_cache=await _step(
            streams or answers, partial(habits.prefix_cache, listed=listed), model
        ),
        tool_calling=await _step(answers, chat.tool_calling, model),
        structured_output=await _step(answers, chat.structured_output, model),
        context_length=await _context(streams or answers, client, name, listed),
        abort=await _step(streams and answers, partial(habits.abort, usual=first.seconds), model),
    )
    return _Tried(findings, model)


async def _step(
    worthwhile: bool, step: Callable[[chat.Model], Awaitable[Found[Value]]], model: chat.Model
) -> Found[Value]:
    """Return what ``step`` found; no value, with the reason, when it failed or was skipped."""
    if not worthwhile:
        return _not_tried()
    try:
        return await step(model)
    except ProbeError as error:
        return Found(None, str(error))


async def _context(worthwhile: bool, client: ProbeClient, name: str, listed: Any) -> Found[int]:
    if not worthwhile:
        return _not_tried()
    return await habits.context_length(client, name, listed)


def _ended(seconds: float | None) -> Found[Any]:
    return Found(None, f"not known, because the probe was ended after {seconds:g} s")


def _out_of_time(client: ProbeClient, name: str, seconds: float | None) -> _Tried:
    steps: dict[str, Any] = {each.name: _ended(seconds) for each in fields(ModelFindings)}
    return _Tried(ModelFindings(**{**steps, "name": name}), chat.Model(client, name))


def _not_tried() -> Found[Any]:
    return Found(None, "not tried, because chat does not work")


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
