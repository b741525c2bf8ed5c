"""``manage.py serve``: the production server."""

from __future__ import annotations

import os
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.sharing import processors
from svc_project.serving import page_process, server
from svc_project.serving.lifeline import WorkerEnd
from svc_project.serving.supervisor import NeverReady, NoPageSocket, Supervisor


class Command(BaseCommand):
    help = "Serve both surfaces with uvicorn until SIGTERM or SIGHUP, which drain."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address of both surfaces")
        parser.add_argument("--port", type=int, default=8000, help="port of the inference surface")
        parser.add_argument(
            "--speech-port",
            type=int,
            default=settings.SVC_SPEECH_PORT,
            help="port of the speech surface",
        )
        parser.add_argument(
            "--workers", type=int, default=settings.SVC_WORKERS, help="worker processes"
        )
        parser.add_argument("--sockets", help="descriptors to serve on (used by the parent)")
        parser.add_argument(
            "--lifeline", type=int, help="descriptor of the parent's socket (used by the parent)"
        )
        parser.add_argument(
            "--keep", type=int, help="descriptor to keep open until the end (used by the parent)"
        )
        parser.add_argument(
            "--pages", type=int, help="descriptor to serve pages on (used by the parent)"
        )
        parser.add_argument(
            "--until", type=int, help="descriptor that closes with all workers (used by the parent)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["pages"]:
            page_process.run(
                socket.socket(fileno=options["pages"]),
                WorkerEnd(options["lifeline"]),
                options["until"],
            )
        if options["sockets"]:
            self._serve_as_worker(options)
            return
        workers = options["workers"]
        if workers < 1:
            raise CommandError("--workers must be at least 1.")
        if workers > 1 and not settings.REDIS_URL:
            raise CommandError(
                "--workers above 1 needs REDIS_URL: without it each worker would grant every rate "
                "limit in full. Set REDIS_URL, or serve with one worker."
            )
        # The workers read them from the environment, this process from the settings.
        os.environ["SVC_SPEECH_PORT"] = str(options["speech_port"])
        os.environ["SVC_WORKERS"] = str(workers)
        settings.SVC_SPEECH_PORT = options["speech_port"]
        settings.SVC_WORKERS = workers
        sockets = [self._bind(options["host"], options[name]) for name in ("port", "speech_port")]
        self.stdout.write(
            f"inference on http://{options['host']}:{options['port']}, "
            f"speech on http://{options['host']}:{options['speech_port']}, {workers} worker(s)"
        )
        self.stdout.flush()
        if workers == 1:
            server.run(sockets)
        else:
            try:
                Supervisor(workers, sockets, settings.SVC_WORKER_BLOCKED_SECONDS).run()
            except (NoPageSocket, NeverReady) as error:
                raise CommandError(str(error)) from None

    def _serve_as_worker(self, options: dict[str, Any]) -> None:
        if options["keep"]:
            os.set_inheritable(options["keep"], False)
        sockets = [socket.socket(fileno=int(number)) for number in options["sockets"].split(",")]
        for each in sockets:
            # Processes of engines would keep the address open after this worker.
            each.set_inheritable(False)
        line = WorkerEnd(options["lifeline"])
        processors.keep_to_share(settings.SVC_WORKER, settings.SVC_WORKERS)
        server.run(sockets, line)

    def _bind(self, host: str, port: int) -> socket.socket:
        try:
            return server.bind(host, port)
        except OSError as error:
            raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
