"""The findings of a probe, the settings of a backend that fit them, and their words for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage

Value = TypeVar("Value")


@dataclass(frozen=True)
class Found(Generic[Value]):
    """The outcome of one step. ``value`` is None when it is not known; ``words`` give the reason."""

    value: Value | None
    words: str


@dataclass(frozen=True)
class ModelFindings:
    """The findings about one model of a server."""

    name: str
    """The server's name for it."""
    chat: Found[bool]
    """Whether a whole answer came, in the shape of the convention."""
    stream: Found[bool]
    usage: Found[bool]
    """Whether token counts come with whole answers, and at the end of streams."""
    output_cap: Found[OutputCapField]
    running_usage: Found[RunningUsage]
    prefix_cache: Found[PrefixCache]
    """``SHARED`` where the server refuses ``cache_salt``, ``ORGANIZATION`` where it is known to use it."""
    tool_calling: Found[bool]
    structured_output: Found[bool]
    context_length: Found[int]
    """Tokens of prompt and answer together, as the server is configured."""
    abort: Found[bool]
    """Whether the server answers promptly after a client disconnected in the middle of a stream."""

    @property
    def works(self) -> bool:
        """Whether chat works, whole and streamed."""
        return bool(self.chat.value and self.stream.value)


@dataclass(frozen=True)
class ServerFindings:
    """The findings about one server."""

    base_url: str
    """The address at which it answers, without a final slash."""
    connection: Found[bool]
    listing: Found[bool]
    """Whether it lists its models."""
    listed: Sequence[str]
    """Every model that it lists."""
    keep_alive: Found[KeepAlive]
    models: Sequence[ModelFindings]
    """The models that were probed."""

    @property
    def working(self) -> list[ModelFindings]:
        """The models with which chat works."""
        return [model for model in self.models if model.works]


Dialect = TypeVar("Dialect", bound=StrEnum)


@dataclass(frozen=True)
class FittingSettings:
    """Settings of a backend; a value is None where the probe could not find it."""

    base_url: str
    running_usage: Found[RunningUsage]
    output_cap_field: Found[OutputCapField]
    prefix_cache: Found[PrefixCache]
    keep_alive: Found[KeepAlive]


def fitting(server: ServerFindings) -> FittingSettings:
    """Choose the settings of a backend for ``server``.

    A backend has one value of each setting, so models that differ leave it open.
    """
    return FittingSettings(
        base_url=server.base_url,
        running_usage=_common(server.working, lambda model: model.running_usage),
        output_cap_field=_common(server.working, lambda model: model.output_cap),
        prefix_cache=_common(server.working, lambda model: model.prefix_cache),
        keep_alive=server.keep_alive,
    )


def _common(
    models: Sequence[ModelFindings], found: Callable[[ModelFindings], Found[Dialect]]
) -> Found[Dialect]:
    """Return the value that all ``models`` with a known value share."""
    known = [found(model) for model in models if found(model).value is not None]
    if not known:
        return Found(None, found(models[0]).words if models else "chat does not work")
    if len({each.value for each in known}) > 1:
        return Found(None, "its models differ")
    return known[0]


_NOT_KNOWN: Final = "not known"
Shown = (
    Found[bool]
    | Found[int]
    | Found[RunningUsage]
    | Found[OutputCapField]
    | Found[PrefixCache]
    | Found[KeepAlive]
)
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
        ("prefix_cache", fitting.prefix_cache),
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
    context = f"a context of {tokens} tokens" if tokens else "an unknown context length"
    return f"{model.name}: {', '.join(can)}; {context}"


def shortcomings(model: ModelFindings) -> Iterator[str]:
    """Yield the abilities that a working model lacks, each with the reason."""
    for name, found in (
        ("token usage", model.usage),
        ("tool calls", model.tool_calling),
        ("JSON schemas", model.structured_output),
        ("stops after a disconnect", model.abort),
    ):
        if not found.value:
            yield f"{name}: {_value(found.value)}, {found.words}"


def _rows(model: ModelFindings) -> list[_Row]:
    return [
        ("chat", model.chat),
        ("stream", model.stream),
        ("token usage", model.usage),
        ("output cap", model.output_cap),
        ("running usage", model.running_usage),
        ("prefix cache", model.prefix_cache),
        ("tool calls", model.tool_calling),
        ("JSON schemas", model.structured_output),
        ("context", model.context_length),
        ("disconnect", model.abort),
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
