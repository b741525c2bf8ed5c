"""Writes the rows of the list of chats as text: a template for each row took most of the page's time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from django import template
from django.utils.safestring import SafeString, mark_safe

from accounts.console.addresses import reverse
from usage.models import UsageRow
from usage.templatetags.formats import duration, duration_or_dash, exact, figure, moment, single

if TYPE_CHECKING:
    from usage.console.requests_page import RequestLine

register = template.Library()

_STATES: Final = {"success": "good", "client_disconnected": "warn"}


@register.simple_tag
def outcome(name: str) -> SafeString:
    """How a request ended, in the colour of what that means."""
    state = _STATES.get(name, "bad")
    return mark_safe(f'<span class="state {state}">{escape(name)}</span>')  # noqa: S308  # escaped


@register.simple_tag
def chat_rows(lines: Sequence[RequestLine], currency: str) -> SafeString:
    """The rows of a table of chats; ``currency`` is that of all costs, or an empty text."""
    rows = [_chat(line, line.row, currency) for line in lines if isinstance(line.row, UsageRow)]
    return mark_safe("\n".join(rows))  # noqa: S308  # escaped


def _chat(line: RequestLine, row: UsageRow, currency: str) -> str:
    at, request_id = exact(row.occurred_at), escape(row.request_id)
    address = escape(reverse("console-request", [row.request_id]))
    code = row.error_code if row.error_code != row.outcome else None
    cost = single(line.cost.total, "" if currency else row.price_currency) if line.cost else ""
    first = row.time_to_first_token_ms
    return f"""\
  <tr data-row="{at} {request_id}">
    <th scope="row" class="time"><a href="{address}" title="{at} {request_id}">{moment(row.occurred_at)}</a></th>
    <td>{escape(row.model_identifier)}</td>
    <td title="{escape(line.key.prefix)}">{escape(line.key.text)}</td>
    <td>{outcome(row.outcome)}{f'<br><code class="hint">{escape(code)}</code>' if code else ""}</td>
    <td class="n">{figure(row.backend_reported_input_tokens)}</td>
    <td class="n">{figure(row.backend_reported_output_tokens)}</td>
    <td class="n" data-currency="{escape(currency)}">{cost}</td>
    <td class="n">{duration_or_dash(first or None)}</td>
    <td class="n">{duration(row.total_duration_ms)}</td>
  </tr>"""
