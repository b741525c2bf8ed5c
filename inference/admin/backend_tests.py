"""The steps of a model server's test in the admin, and how its last test is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html

from core.admin.backends import Link, Step, StepFailed, failed, try_step
from core.admin.columns import Tone, badge
from inference.models import Backend, BackendTest
from inference.models.last_tests import Verdict
from inference.probe.chat import first_answer
from inference.probe.client import ProbeClient, ProbeError, Target
from inference.probe.connect import KeyUnreadable, deployed, reach, target_of
from inference.probe.publishing import RIGHTS

MOST_MODELS: Final = 8
"""Models that a test requests an answer of, and that it names."""
ANSWER_SECONDS: Final = 15.0
"""How long a model may take for the one token of a test."""
_TONES: Final = {
    Verdict.PASSED: Tone.GOOD,
    Verdict.UNLISTED: Tone.WARN,
    Verdict.FAILED: Tone.BAD,
}


def last_test(backend: Any) -> str:
    """The result of the last test as a badge, with its time and, unless it passed, its words."""
    test: BackendTest | None = getattr(backend, "last_test", None)
    if test is None or test.tested_at is None:
        return "not yet"
    verdict = Verdict(test.result)
    shown = badge("unlisted model" if verdict is Verdict.UNLISTED else verdict, _TONES[verdict])
    return format_html(
        '{} <a href="{}">{}</a>{}',
        shown,
        reverse("admin:inference_backend_test", args=[backend.pk]),
        date_format(test.tested_at, "DATETIME_FORMAT"),
        "" if verdict is Verdict.PASSED else f": {test.words}",
    )


def steps_of(backend: Backend) -> AsyncIterator[Step]:
    """Read what a test of ``backend`` needs, and return its steps, which use no database."""
    page = reverse("admin:inference_backend_change", args=[backend.pk])
    try:
        target = target_of(backend, ANSWER_SECONDS)
    except KeyUnreadable as error:
        variable = Link("Name another variable", f"{page}#id_api_key_env")
        return failed(Step("Key", False, str(error), 0, (variable,)))
    return _steps(target, deployed(backend), backend.pk)


async def _steps(target: Target, names: Sequence[str], backend_id: Any) -> AsyncIterator[Step]:
    page = reverse("admin:inference_backend_change", args=[backend_id])
    listed: list[str] = []

    async def reached() -> str:
        try:
            connected = await reach(target)
        except ProbeError as error:
            raise StepFailed(
                str(error), (Link("See its address", f"{page}#id_base_url"),)
            ) from None
        listed.extend(connected.models)
        return connected.words

    async def answered(name: str) -> str:
        async with ProbeClient(target) as client:
            found = (await first_answer(client, name)).found
        words = found.words
        if not found.value:
            raise StepFailed(words)
        return (
            f"{words}, though its list does not name it" if listed and name not in listed else words
        )

    connected = await try_step("Connect and list models", reached)
    yield connected
    if not connected.passed:
        return
    for name in names[:MOST_MODELS]:
        yield await try_step(f"One token of {name}", partial(answered, name))
    if (others := _others(listed, names, backend_id)) is not None:
        yield others


def _others(listed: Sequence[str], names: Sequence[str], backend_id: Any) -> Step | None:
    """What the server lists and does not serve here, with the pages where that is changed."""
    others = [name for name in listed if name not in names]
    publish = Link(
        "Publish them",
        f"{reverse('admin:inference_backend_add_server')}?backend={backend_id}",
        tuple(RIGHTS),
    )
    if names:
        words = _named("It also lists", others)
        return Step("Other models", True, words, 0, (publish,)) if others else None
    page = reverse("admin:inference_backend_change", args=[backend_id])
    add = Link("Add a deployment", f"{page}#deployments-group")
    words = f"No deployment is enabled. {_named('It lists', others)}"
    return Step("Models", False, words, 0, (publish, add) if others else (add,))


def _named(words: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = len(names) - MOST_MODELS
    listed = ", ".join(name[:100] for name in names[:MOST_MODELS])
    return f"{words} {listed}{f' and {more} more' if more > 0 else ''}."
