"""``manage.py simulate_backend``: a model server without a model, and a speech server beside it."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.chat.tokenizers import UnknownTokenizer, load
from simulators.chat.app import Simulator
from simulators.chat.dialects import DIALECTS
from simulators.chat.faults import Faults, parse_faults
from simulators.chat.options import Options
from simulators.chat.requests_log import RequestLog
from simulators.serving import App, Listener, serve
from simulators.speech.app import SpeechSimulator
from simulators.speech.faults import Faults as SpeechFaults
from simulators.speech.faults import parse_faults as parse_speech_faults
from simulators.speech.options import SpeechOptions
from svc_project.serving.lifeline import WorkerEnd
from svc_project.serving.listeners import listen


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
        parser.add_argument(
            "--lifeline", type=int, help="Descriptor of the parent's socket (used by run_demo)."
        )
        parser.add_argument("--api-key", help="Refuse requests without this key.")
        parser.add_argument(
            "--record", type=Path, metavar="FILE", help="Append a JSON line for each request."
        )
        self._add_answer_arguments(parser.add_argument_group("answers of the model server"))
        self._add_speech_arguments(parser.add_argument_group("the speech server"))

    def _add_answer_arguments(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument("--tokenizer", default="o200k_base", help="Name, or tokenizer.json.")
        group.add_argument(
            "--tokens-per-second", type=_not_negative, default=0.0, help="0: at once."
        )
        group.add_argument(
            "--first-token-delay", type=_not_negative, default=0.0, help="In seconds."
        )
        group.add_argument(
            "--fault",
            dest="faults",
            type=_faults,
            default="none",
            metavar="NAME[@N]",
            help="A fault of every request that does not choose its own.",
        )
        group.add_argument(
            "--dialect",
            choices=["none", *DIALECTS],
            default="none",
            help="Answer as this server does, where a request does not choose.",
        )
        group.add_argument(
            "--no-continuous-usage",
            dest="continuous_usage",
            action="store_false",
            help="Report no usage while a stream runs, asked for or not.",
        )
        group.add_argument(
            "--prefix-cache",
            action="store_true",
            help="Keep prompts by their cache_salt, and report how many tokens were kept.",
        )

    def _add_speech_arguments(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--speech-port", type=int, help="Serve speech too, on this port; 0 picks a free one."
        )
        group.add_argument(
            "--speech-voice",
            dest="speech_voices",
            action="append",
            default=[],
            metavar="NAME",
            help="Voice to serve; may be repeated. Without it every name speaks.",
        )
        group.add_argument(
            "--speech-delay", type=_not_negative, default=0.0, help="Before a sound, in seconds."
        )
        group.add_argument(
            "--speech-fault",
            dest="speech_faults",
            type=_speech_faults,
            default="none",
            metavar="NAME[@N]",
            help="A fault of every speech request that does not choose its own.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = Options(
            **{name: options[name] for name in Options.__dataclass_fields__ if name != "models"},
            models=tuple(options["models"]),
        )
        if options["lifeline"] is not None:
            # The simulator has no work that must be finished.
            WorkerEnd(options["lifeline"]).watch(lambda: os._exit(0))
        with contextlib.ExitStack() as stack:
            try:
                load(chosen.tokenizer)
                log = stack.enter_context(contextlib.closing(RequestLog(chosen.record)))
                listeners = [self._listener(Simulator(chosen, log), chosen.port, "model", options)]
                at_end = None
                if (port := options["speech_port"]) is not None:
                    speech = SpeechSimulator(_speech_options(options))
                    at_end = speech.close
                    listeners.append(self._listener(speech, port, "speech", options))
            except (UnknownTokenizer, OSError) as error:
                raise CommandError(str(error)) from error
            serve(listeners, at_end)

    def _listener(self, app: App, port: int, kind: str, options: dict[str, Any]) -> Listener:
        def announce(address: str) -> None:
            self.stdout.write(f"The {kind} simulator listens on {address}/v1")
            self.stdout.flush()

        return Listener(app, listen(options["host"], port), announce)


def _speech_options(options: dict[str, Any]) -> SpeechOptions:
    return SpeechOptions(
        voices=tuple(options["speech_voices"]),
        api_key=options["api_key"],
        delay=options["speech_delay"],
        faults=options["speech_faults"],
    )


def _speech_faults(text: str) -> SpeechFaults:
    try:
        return parse_speech_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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
