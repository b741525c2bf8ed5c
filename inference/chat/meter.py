"""The token counts of one request: reported by the backend, generated, and delivered to the client.

The reported counts are what is billed and are never exceeded; generated and delivered counts
stand beside them (inference contract, Token figures; docs/explain/metering.md).
"""

from __future__ import annotations

import re
import time
from decimal import Decimal

import msgspec

from core.errors import ApiError, BackendProtocolError, InternalError
from inference.backends.outcomes import outcome_of
from inference.wire.answers import CompletionDetailsObject, PromptDetailsObject, Usage, UsageObject
from usage.models import Outcome
from usage.receipts import Progress, Receipt

LARGEST_COUNT = 2**31 - 1
"""Larger than any real count, and far from overflowing a 64-bit column or a sum."""

_PIECE_CHARACTERS = 64
"""Added for each piece of text, for the overhead of a Python string in memory."""

_FINGERPRINT = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class Identity(msgspec.Struct, frozen=True):
    """The columns of a row that are known at admission and do not change afterwards."""

    request_id: str
    organization_id: str
    api_key_id: str
    model_identifier: str
    model_id: str
    model_version_id: str
    streamed: bool
    shape: str
    input_price: Decimal
    output_price: Decimal
    currency: str


class Meter:
    """Counts the tokens of one request, which arrived at ``arrived`` on the ``perf_counter`` clock.

    ``counted_input`` is the gateway's own count for a backend that reported nothing,
    ``counted_output`` that of ``unreported_text``. A reported count above ``largest_count`` is
    invalid.
    """

    __slots__ = (
        "_delivered_pieces",
        "_delivered_reported",
        "_held",
        "_held_pieces",
        "_largest_count",
        "_noted_at",
        "_reported_pieces",
        "arrived",
        "attempts",
        "cached_input",
        "counted_input",
        "counted_output",
        "fingerprint",
        "finish_delivered",
        "first_token",
        "identity",
        "is_new_report",
        "model_server",
        "pieces",
        "queue_ms",
        "reported",
        "reported_input",
        "reported_output",
        "reported_reasoning",
    )

    def __init__(
        self, identity: Identity, arrived: float, largest_count: int = LARGEST_COUNT
    ) -> None:
        self.identity = identity
        self.arrived = arrived
        self.reported = False
        self.reported_input = 0
        self.reported_output = 0
        self.reported_reasoning = 0
        self.cached_input: int | None = None
        self.counted_input: int | None = None
        self.counted_output: int | None = None
        self.fingerprint: str | None = None
        self.model_server: str | None = None
        self.attempts: int | None = None
        self.queue_ms: int | None = None
        self.first_token: float | None = None
        self.pieces: list[str] = []
        self.finish_delivered = False
        self._delivered_pieces = 0
        self._delivered_reported = 0
        self._noted_at = 0.0
        self._reported_pieces = 0
        self.is_new_report = False
        self._held = 0
        self._held_pieces = 0
        self._largest_count = min(largest_count, LARGEST_COUNT)

    def mark_first_token(self) -> None:
        """Record that the first token, or the beginning of a whole answer, arrived now."""
        if self.first_token is None:
            self.first_token = time.perf_counter()

    def take_text(self, text: str) -> None:
        """Count one piece of the answer's text, reasoning or tool calls; ``text`` is not empty."""
        self.pieces.append(text)
        if self.first_token is None:
            self.first_token = time.perf_counter()

    def take_usage(self, usage: Usage) -> None:
        """Take over the token counts that a backend reported, which are running totals.

        Without any counts nothing was reported. Raises ``BackendProtocolError`` when one is absent,
        negative, smaller than before or above ``largest_count``, or reasoning above output. The last
        valid ones stay.

        They contain the text of the same chunk, taken afterwards, until ``close_report``.
        """
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        details, cache = usage.completion_tokens_details, usage.prompt_tokens_details
        if (
            prompt == self.reported_input
            and self.reported
            and details is None
            and cache is None
            and completion is not None
            and self.reported_output <= completion <= self._largest_count
        ):
            # A running total: most chunks report the same prompt and some more output.
            self.reported_output, self.is_new_report = completion, True
            return
        if prompt is None and completion is None and details is None:
            self.close_report(is_final=False)
            return
        reasoning = (details.reasoning_tokens or 0) if details is not None else 0
        if (
            prompt is None
            or completion is None
            or not 0 <= prompt <= self._largest_count
            or not self.reported_output <= completion <= self._largest_count
            or not 0 <= reasoning <= completion
            or (self.reported and prompt < self.reported_input)
        ):
            raise BackendProtocolError("The model server reported invalid token usage.")
        self.reported = self.is_new_report = True
        self.reported_input, self.reported_output = prompt, completion
        self.reported_reasoning = max(reasoning, self.reported_reasoning)
        if cache is not None and cache.cached_tokens is not None:
            self.cached_input = min(max(cache.cached_tokens, 0), prompt)

    def close_report(self, *, is_final: bool) -> None:
        """Record that a new report contains all pieces so far, and none that follows.

        One of no output, unless it ``is_final``, fills the field only and contains none.
        """
        if self.is_new_report and (is_final or self.reported_output):
            self._reported_pieces = len(self.pieces)
        self.is_new_report = False

    def take_fingerprint(self, fingerprint: str) -> None:
        """Keep the backend's fingerprint if it is well-formed: exports show it."""
        if self.fingerprint is None and _FINGERPRINT.fullmatch(fingerprint):
            self.fingerprint = fingerprint

    def held_characters(self) -> int:
        """Return the size of the answer's text: its characters, and ``_PIECE_CHARACTERS`` a piece."""
        new = self.pieces[self._held_pieces :]
        self._held += sum(map(len, new)) + len(new) * _PIECE_CHARACTERS
        self._held_pieces += len(new)
        return self._held

    def mark_delivered(self) -> None:
        """Record that all pieces so far were written to the client's socket."""
        self._delivered_pieces = len(self.pieces)
        self._delivered_reported = self.reported_output

    @property
    def output_text(self) -> str:
        return "".join(self.pieces)

    @property
    def unreported_pieces(self) -> int:
        """How many pieces no report contains: all of them without one, else those that followed it."""
        return 0 if self.is_new_report else len(self.pieces) - self._reported_pieces

    @property
    def unreported_text(self) -> str:
        return "".join(self.pieces[len(self.pieces) - self.unreported_pieces :])

    @property
    def unreported_tokens(self) -> int:
        """The gateway's own count of what no report contains, else the number of its pieces."""
        if self.is_new_report:
            return 0
        pieces = len(self.pieces) - self._reported_pieces
        return pieces if self.counted_output is None or not pieces else self.counted_output

    @property
    def generated_tokens(self) -> int:
        """The reported count, and the gateway's own of what no report contains."""
        if self.is_new_report:
            return self.reported_output
        return self.reported_output + self.unreported_tokens

    def delivered_tokens(self) -> int:
        """Return the tokens sent to the client of an answer that is not complete.

        With running usage, the count reported with the last frame sent and a part of those that
        followed the last report; without, the same fraction of the generated tokens as of the text
        pieces.
        """
        generated = self.generated_tokens
        if self._delivered_reported:
            unreported = self.unreported_pieces
            sent = max(0, self._delivered_pieces - len(self.pieces) + unreported)
            rest = self.unreported_tokens * sent // unreported if unreported else 0
            return min(self._delivered_reported + rest, generated)
        if not self.pieces:
            return 0
        return min(generated, generated * self._delivered_pieces // len(self.pieces))

    def client_usage(self) -> UsageObject:
        """Build the usage object for the client."""
        prompt = self.reported_input if self.reported else (self.counted_input or 0)
        completion = self.generated_tokens
        usage = UsageObject(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
            completion_tokens_details=CompletionDetailsObject(self.reported_reasoning),
        )
        if self.cached_input is not None:
            usage.prompt_tokens_details = PromptDetailsObject(self.cached_input)
        return usage

    def progress(self, every_seconds: float) -> Progress | None:
        """Return the counts so far.

        None when there are none yet, or when the last ones were returned under ``every_seconds`` ago.
        """
        if not self.pieces and not self.reported:
            return None
        now = time.perf_counter()
        if now - self._noted_at < every_seconds:
            return None
        self._noted_at = now
        return Progress(
            self.identity.request_id,
            self.reported_input,
            self.reported_output,
            self.reported_reasoning,
            self.generated_tokens,
            self.delivered_tokens(),
            self.cached_input,
        )

    def admitted(self) -> Receipt:
        """Return the row to write if the gateway crashes: ``interrupted``, nothing reported."""
        return self._receipt(Outcome.INTERRUPTED, 500, InternalError.code)

    def receipt(self, failure: ApiError | None, http_status: int) -> Receipt:
        """Return the row of the ended request; ``http_status`` is the status sent to the client."""
        receipt = self._receipt(
            outcome_of(failure), http_status, None if failure is None else failure.code
        )
        receipt.backend_reported_input_tokens = self.reported_input
        receipt.backend_reported_output_tokens = self.reported_output
        receipt.backend_reported_reasoning_tokens = self.reported_reasoning
        receipt.cached_input_tokens = self.cached_input
        generated = self.generated_tokens
        receipt.generated_output_tokens = generated
        receipt.delivered_output_tokens = generated if failure is None else self.delivered_tokens()
        receipt.system_fingerprint = self.fingerprint
        if self.first_token is not None:
            receipt.time_to_first_token_ms = round((self.first_token - self.arrived) * 1000)
        receipt.total_duration_ms = round((time.perf_counter() - self.arrived) * 1000)
        return receipt

    def _receipt(self, outcome: Outcome, http_status: int, error_code: str | None) -> Receipt:
        identity = self.identity
        return Receipt(
            request_id=identity.request_id,
            organization_id=identity.organization_id,
            api_key_id=identity.api_key_id,
            model_identifier=identity.model_identifier,
            model_id=identity.model_id,
            model_version_id=identity.model_version_id,
            outcome=outcome.value,
            streamed=identity.streamed,
            shape=identity.shape,
            http_status=http_status,
            error_code=error_code,
            input_price_per_mtok=identity.input_price,
            output_price_per_mtok=identity.output_price,
            price_currency=identity.currency,
            model_server=self.model_server,
            attempts=self.attempts,
            queue_ms=self.queue_ms,
        )
