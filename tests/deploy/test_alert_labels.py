"""The codes and outcomes that alerts and the dashboard select by are those of the gateway."""

from __future__ import annotations

import re

from core.errors import ApiError
from tests.deploy.test_monitoring import alerts, graphs
from usage.models.values import Outcome


def codes() -> set[str]:
    found, waiting = set(), [ApiError]
    while waiting:
        error = waiting.pop()
        found.add(error.code or "")
        waiting += error.__subclasses__()
    return found


def test_every_code_and_outcome_that_is_selected_exists() -> None:
    known = {"code": codes(), "outcome": {"", *Outcome.values}}
    selected = [
        (label, value)
        for expression in [*(rule["expr"] for rule in alerts()), *graphs()]
        for label, values in re.findall(r'\b(code|outcome)!?=~?"([\w|]*)"', expression)
        for value in values.split("|")
    ]
    assert len(selected) > 10
    assert [each for each in selected if each[1] not in known[each[0]]] == []
