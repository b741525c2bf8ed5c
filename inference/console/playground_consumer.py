"""The playground's requests: chat requests of a person, by session instead of by key."""

from __future__ import annotations

from typing import ClassVar

from accounts.console.sessions import SessionConsumer
from inference.chat.consumer import ChatCompletionsConsumer


class PlaygroundConsumer(SessionConsumer, ChatCompletionsConsumer):
    """``POST /console/playground/chat``: body, answer, limits and row are those of the API.

    Only the caller differs: the organization that the session shows, without a key.
    """

    route: ClassVar[str] = "playground"
