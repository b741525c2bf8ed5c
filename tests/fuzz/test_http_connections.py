"""Any bytes on an HTTP connection are answered once each, or end it: nothing twice, nothing silent."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.fuzzing.connections import Player
from tests.support.fuzzing.http_conversations import Conversation, Conversations, Keys
from tests.support.fuzzing.http_reading import Malformed, faults_of_http, read_received, read_sent
from tests.support.fuzzing.seeds import BOUNDS, SECONDS, batches
from tests.support.live import NO_TLS, Gateway
from tests.support.speech.accounts import speech_account
from tests.support.until import until
from usage.models import UsageRow


class Observed:
    """Looks at each connection, and keeps what the ledger has to agree with."""

    def __init__(self, decoy: str) -> None:
        self._decoy = f"Bearer {decoy}".encode()
        self.chats = 0
        """The most chats that can have been admitted."""
        self.bared = 0
        """The most chats of bodies that a mutated field ("contt-length") made requests of their own."""
        self.answered: set[str] = set()
        """The request ids of chats that were answered."""

    def look(self, conversation: Conversation, received: bytes, ended: bool) -> list[str]:
        if faults := faults_of_http(conversation, received, ended=ended):
            return faults
        sent = read_sent(conversation.sent)
        self.chats += sent.chats
        if self._decoy in sent.credentials:
            self.bared += sent.chats
        self.answered |= {
            answer.headers["x-request-id"]
            for answer in read_received(received, sent.methods).answers
            if answer.status == 200 and b"chatcmpl-" in answer.body
        }
        return []


def is_answered(conversation: Conversation, received: bytes) -> bool:
    """Whether nothing more has to come, and the connection may stay open."""
    sent = read_sent(conversation.sent)
    try:
        answers = read_received(received, sent.methods).answers
    except Malformed:
        return True
    return sent.stays_open and len(answers) >= len(sent.methods)


@pytest.mark.timeout(0)
def test_any_bytes_are_answered_once_or_end_the_connection(
    gateway_with: Callable[..., Gateway],
) -> None:
    """What looks like a request in a body is for a key of its own, which no body is served for."""
    gateway = gateway_with(**BOUNDS)
    decoy = Organization.objects.create(name="nobody", requests_per_minute=None)
    keys = Keys(
        inference=gateway.key,
        speech=speech_account(gateway).key,
        decoy=mint(decoy, Scope.INFERENCE, "test").secret,
    )
    conversations = Conversations(keys, gateway.models["running"])
    player = Player(gateway.port, gateway.speech_port, gateway.command.log, SECONDS)
    observed = Observed(keys.decoy)
    for seeds in batches(200):
        findings = player.play(map(conversations.make, seeds), observed.look, is_answered)
        assert not findings, "\n".join(map(str, findings[:20]))
    assert httpx2.get(f"{gateway.url}/livez", verify=NO_TLS, timeout=60).status_code == 200
    written = UsageRow.objects.filter(organization_id__in=(gateway.organization.pk, decoy.pk))
    until(lambda: observed.answered <= set(written.values_list("request_id", flat=True)))
    assert bool(observed.answered) <= written.count() <= observed.chats
    assert written.filter(organization_id=decoy.pk).count() <= observed.bared
