"""``verify_ledger [--since T] [--resume]``: check that rows, their sums and costs agree."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.money import cost_text
from usage.management.arguments import add_resume, add_since, progress_of
from usage.verification.rollups import Verdict, verify


class Command(BaseCommand):
    help = (
        "Recompute every roll-up, every speech day and every cost from the rows, check the rows "
        "themselves and their prices, and print each difference. Exits 1 when there is one; a line that begins with Note is none. Changes nothing. For "
        "pruned rows it uses the sums that were kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_since(parser)
        add_resume(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        progress = progress_of("verify_ledger", Verdict(), options, self.stderr)
        verdict = verify(self.stdout.write, options["since"], progress)
        costs = ", ".join(
            f"{cost_text(cost)} {currency}" for currency, cost in sorted(verdict.costs.items())
        )
        pruned = f"pruned rows: {verdict.pruned_rows}, " if verdict.pruned_rows else ""
        self.stdout.write(
            f"rows: {verdict.rows}, {pruned}roll-ups: {verdict.rollups}, "
            f"speech rows: {verdict.speech_rows}, speech days: {verdict.speech_days}, "
            f"cost: {costs or 'nothing'}"
        )
        if verdict.differences:
            raise CommandError(
                f"Differences: {verdict.differences}. rebuild_rollups rebuilds roll-ups and speech days "
                "from the rows; an operator has to examine rows that are wrong themselves."
            )
