"""Formats a probe's findings for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from inference.probe.findings import Found, ModelFindings, ServerFindings
from inference.probe.settings import FittingSettings
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage

_NOT_KNOWN: Final = "not known"
Shown = Found[bool] | Found[int] | Found[RunningUsage] | Found[OutputCapField] | Found[KeepAlive]
_Row = tuple[str, Shown]


def findings_table(server: ServerFindings) -> list[str]:
    """Return a line for each step: its name, its outcome, and the reason."""
    rows: list[_Row] = [("connection", server.connection), ("list of models", server.listing)]
    if server.connection.value:
        rows.append(("kept connections", server.keep_alive))
    lines = [server.base_url, *_lines(rows)]
    for model in server.models:
        lines += [model.name, *_lines(_rows(model))]
    return lines


def settings_table(fitting: FittingSettings) -> list[str]:
    """Return a line for each setting of a backend that the probe chooses."""
    rows: list[_Row] = [
        ("running_usage", fitting.running_usage),
        ("output_cap_field", fitting.output_cap_field),
        ("keep_alive", fitting.keep_alive),
    ]
    return ["settings that fit", *_lines(rows)]


def summary(model: ModelFindings) -> str:
    """Describe one model in one line, for the demo."""
    if not model.works:
        failed = model.chat if not model.chat.value else model.stream
        return f"{model.name}: left out, because chat does not work: {failed.words}"
    can = [
        "streams",
        *(["tool calls"] if model.tool_calling.value else []),
        *(["JSON schemas"] if model.structured_output.value else []),
    ]
    tokens = model.context_length.value
    context = f"a context of {tokens} tokens" if tokens else "a context that it does not tell"
    return f"{model.name}: {', '.join(can)}; {context}"


def shortcomings(model: ModelFindings) -> Iterator[str]:
    """Yield the abilities that a working model lacks, each with the reason."""
    for name, found in (
        ("token figures", model.usage),
        ("tool calls", model.tool_calling),
        ("JSON schemas", model.structured_output),
        ("letting go", model.abort),
    ):
        if not found.value:
            yield f"{name}: {_value(found.value)}, {found.words}"


def _rows(model: ModelFindings) -> list[_Row]:
    return [
        ("chat", model.chat),
        ("stream", model.stream),
        ("token figures", model.usage),
        ("output cap", model.output_cap),
        ("running usage", model.running_usage),
        ("tool calls", model.tool_calling),
        ("JSON schemas", model.structured_output),
        ("context", model.context_length),
        ("hang-up", model.abort),
    ]


def _lines(rows: Sequence[_Row]) -> list[str]:
    return [
        f"  {name:<17} {_value(found.value):<12} {found.words}".rstrip() for name, found in rows
    ]


def _value(value: bool | int | StrEnum | None) -> str:
    if value is None:
        return _NOT_KNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
