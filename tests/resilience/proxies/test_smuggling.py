"""Two organizations share a proxy's one connection, and one of them attacks: each gets its own answers.

``SVC_TEST_PROXY_ROUNDS`` sets the rounds for each proxy.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from accounts.models import Organization, Scope
from tests.resilience.proxies.attacks import Keys
from tests.resilience.proxies.conftest import Opened
from tests.resilience.proxies.rounds import Rounds
from tests.support.live import Gateway
from tests.support.speech.caller import SpeechAccount
from usage.models import UsageRow

ROUNDS = int(os.environ.get("SVC_TEST_PROXY_ROUNDS", "300"))


def request_ids(organization: Organization) -> Counter[str]:
    """The request ids of all chats of an organization, as the ledger has them."""
    rows = UsageRow.objects.filter(organization_id=organization.pk)
    return Counter(rows.values_list("request_id", flat=True))


@pytest.mark.timeout(120 + ROUNDS // 10)
def test_nobody_reads_the_answer_to_another(
    opened: Opened, hidden: Gateway, attacker: SpeechAccount
) -> None:
    keys = Keys(inference=attacker.mint(Scope.INFERENCE), speech=attacker.key)
    rounds = Rounds(opened.front, opened.port, keys, hidden.key)
    tally = asyncio.run(rounds.play(range(ROUNDS)))

    assert tally.wrong == []
    assert tally.rounds == ROUNDS
    # Whatever was run besides what was answered has a row too.
    assert request_ids(hidden.organization) == Counter(tally.victim_ids)
    assert request_ids(attacker.organization) == Counter(tally.attacker_ids)
    assert attacker.rows() == []
