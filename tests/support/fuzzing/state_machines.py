"""Runs a state machine that needs fixtures of its test, for a bounded number of examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_state_machine(make: Callable[[], RuleBasedStateMachine], *, runs: int, steps: int) -> None:
    """Try ``runs`` runs of at most ``steps`` rules, each on a new machine from ``make``."""
    run_state_machine_as_test(
        # Only called, whatever the types say (hypothesis, Stateful testing).
        cast("type[RuleBasedStateMachine]", make),
        settings=settings(
            max_examples=runs,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
