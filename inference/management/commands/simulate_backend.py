"""``manage.py simulate_backend``: a model server without a model, for development and tests."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.simulator.faults import Faults, parse_faults
from inference.simulator.options import Options
from inference.simulator.server import serve
from inference.tokenizers import UnknownTokenizer


class Command(BaseCommand):
    help = "Run an OpenAI-compatible model server without a model. See docs/develop/simulator.md."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="Address to listen on.")
        parser.add_argument("--port", type=int, default=9000, help="0 picks a free port.")
        parser.add_argument(
            "--model",
            dest="models",
            action="append",
            default=[],
            metavar="NAME",
            help="Name to serve; may be repeated. Without it every name is served.",
        )
        parser.add_argument("--tokenizer", default="o200k_base", help="Name, or tokenizer.json.")
        parser.add_argument(
            "--tokens-per-second", type=_not_negative, default=0.0, help="0: at once."
        )
        parser.add_argument(
            "--first-token-delay", type=_not_negative, default=0.0, help="In seconds."
        )
        parser.add_argument(
            "--fault",
            dest="faults",
            type=_faults,
            default="none",
            metavar="NAME[@N]",
            help="A fault of every request that does not choose its own.",
        )
        parser.add_argument(
            "--no-continuous-usage",
            dest="continuous_usage",
            action="store_false",
            help="Ignore stream_options.continuous_usage_stats.",
        )
        parser.add_argument("--api-key", help="Refuse requests without this key.")
        parser.add_argument(
            "--record", type=Path, metavar="FILE", help="Append a JSON line for each request."
        )
        parser.add_argument(
            "--fast", action="store_true", help="Fixed answers at the least cost, for benchmarks."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = Options(
            **{name: options[name] for name in Options.__dataclass_fields__ if name != "models"},
            models=tuple(options["models"]),
        )
        try:
            serve(chosen, self._announce)
        except (UnknownTokenizer, OSError) as error:
            raise CommandError(str(error)) from error

    def _announce(self, address: str) -> None:
        self.stdout.write(f"The model simulator listens on {address}/v1")
        self.stdout.flush()


def _faults(text: str) -> Faults:
    try:
        return parse_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _not_negative(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("must be zero or more")
    return number
