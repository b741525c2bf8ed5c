"""Chooses the settings of a backend from a probe's findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from inference.probe.findings import Found, ModelFindings, ServerFindings
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage

Dialect = TypeVar("Dialect", bound=StrEnum)


@dataclass(frozen=True)
class FittingSettings:
    """Settings of a backend; a value is None where the probe could not find it."""

    base_url: str
    running_usage: Found[RunningUsage]
    output_cap_field: Found[OutputCapField]
    keep_alive: Found[KeepAlive]


def fitting(server: ServerFindings) -> FittingSettings:
    """Choose the settings of a backend for ``server``.

    A backend has one value of each setting, so models that differ leave it open.
    """
    return FittingSettings(
        base_url=server.base_url,
        running_usage=_common(server.working, lambda model: model.running_usage),
        output_cap_field=_common(server.working, lambda model: model.output_cap),
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
