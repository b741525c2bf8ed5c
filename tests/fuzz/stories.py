"""Running a state machine that needs something of its test, for a bounded number of stories."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_stories(make: Callable[[], RuleBasedStateMachine], *, stories: int, steps: int) -> None:
    """Try ``stories`` of at most ``steps`` rules, each on a machine of its own from ``make``."""
    run_state_machine_as_test(
        # Only called, whatever the types say (hypothesis, Stateful testing).
        cast("type[RuleBasedStateMachine]", make),
        settings=settings(
            max_examples=stories,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
