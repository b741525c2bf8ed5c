"""``manage.py run_demo``, run by ``make run``: migrate, seed, simulate a model, serve."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Organization, Scope
from core.catalog_tables import CatalogFileError
from speech.engines.kokoro import files
from svc_project.management import demo, one_server
from svc_project.serving import state_file, supervisor
from svc_project.serving.generation import program_of
from svc_project.serving.lifeline import ParentEnd
from svc_project.serving.listeners import listen

_SIMULATOR_SECONDS = 20.0
_DEMO_MODEL = "acme/demo-8b"
_VOICE = "ava"
"""A model and a voice of deploy/demo_catalog.toml."""
_NEURAL_VOICE = "heart"
"""A voice of deploy/neural_catalog.toml."""

_GREETING = """
svc is ready.
  inference   {base_url}
  speech      {speech_url}
  console     {url}/console/   {login}
  admin       {url}/admin/     the same login

{secrets}
Try it:

  curl {base_url}/chat/completions \\
    -H "Authorization: Bearer {key}" \\
    -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello!"}}]}}'

  curl -N {base_url}/chat/completions \\
    -H "Authorization: Bearer {key}" \\
    -d '{{"model": "{model}", "stream": true, "messages": [{{"role": "user", "content": "Hello!"}}]}}'

  curl {base_url}/models -H "Authorization: Bearer {key}"

With the OpenAI SDK: a streamed conversation, a tool call, an answer that fits a JSON schema

  .venv/bin/pip install openai
  OPENAI_BASE_URL={base_url} OPENAI_API_KEY={key} .venv/bin/python docs/examples/chat.py

Speech: a file, the OpenAI SDK, and a WebSocket session that writes a file for each sentence

  curl {speech_url}/audio/speech -o hello.wav \\
    -H "Authorization: Bearer {speech_key}" \\
    -d '{{"voice": "{voice}", "input": "Hello! [pause] This voice runs on your own machine."}}'

  OPENAI_BASE_URL={speech_url} OPENAI_API_KEY={speech_key} \\
    .venv/bin/python -c 'from openai import OpenAI; OpenAI().audio.speech.create(model="any",
      voice="{voice}", input="Hello!", response_format="wav").write_to_file("sdk.wav")'

  SVC_TTS_WS_URL={socket_url} SVC_SPEECH_KEY={speech_key} \\
    .venv/bin/python docs/examples/speak.py

Every request is a row in {url}/console/{organization}/requests

Stop with Ctrl-C. Your data stays in {data}.
"""


class Command(BaseCommand):
    help = "Migrate, seed a demo organization and catalog, start the model simulator, serve."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address of both surfaces")
        parser.add_argument("--port", type=int, default=8000, help="port of the inference surface")
        parser.add_argument("--speech-port", type=int, default=settings.SVC_SPEECH_PORT)
        parser.add_argument("--simulator-port", type=int, default=9000)
        parser.add_argument(
            "--model-server",
            type=_list,
            default=[],
            help="addresses of OpenAI-compatible servers, with commas between; they are probed, "
            "and their models are published",
        )
        parser.add_argument(
            "--voices",
            choices=["plain", "espeak", "neural"],
            help="plain or espeak: the neural engine is not installed beside the demo; "
            "neural: more voices of it, which is installed already",
        )
        parser.add_argument(
            "--model",
            type=_list,
            default=[],
            help="names of models on --model-server, with commas between; default: all",
        )
        parser.add_argument(
            "--context", type=int, help="tokens that a model takes, prompt and answer together"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if (options["model"] or options["context"]) and not options["model_server"]:
            raise CommandError("--model and --context need --model-server.")
        running = state_file.read(settings.SVC_DATA_DIR)
        if running is not None:
            raise CommandError(
                f"A gateway (process {running.pid}) runs on {settings.SVC_DATA_DIR} already. Stop it first, "
                "or give this one a directory of its own: SVC_DATA_DIR."
            )
        settings.SVC_SPEECH_PORT = options["speech_port"]
        with ExitStack() as opened:
            sockets = [
                opened.enter_context(self._listen(options["host"], options[port]))
                for port in ("port", "speech_port")
            ]
            _check_free(options["simulator_port"])
            call_command("migrate", verbosity=0)
            seeded, model = self._seed(options)
            for change in seeded.changes:
                self.stdout.write(change)
            with (
                _simulator(options["simulator_port"]),
                _neural_installation(options["voices"], self._tell),
            ):
                self._greet(seeded, options, model)
                # Its workers read the port from the environment.
                os.environ["SVC_SPEECH_PORT"] = str(options["speech_port"])
                try:
                    supervisor.serve_on(sockets, reloads=False)
                except supervisor.CannotServe as error:
                    raise CommandError(str(error), returncode=error.status) from None

    def _seed(self, options: dict[str, Any]) -> tuple[demo.Seeded, str]:
        """What was seeded, and the model of the examples.

        Secrets are made last: those of a start that fails are shown by no start.
        """
        model = _DEMO_MODEL
        changes: list[str] = []
        try:
            if options["model_server"]:
                published = one_server.publish_servers(
                    options["model_server"], options["model"], options["context"], self._tell
                )
                model = published.identifiers[0]
                changes += published.lines
            if options["voices"] == "neural":
                changes += demo.add_neural_voices()
            seeded = demo.seed(f"http://127.0.0.1:{options['simulator_port']}/v1")
        except (CatalogFileError, one_server.NothingToServe) as error:
            raise CommandError(str(error)) from None
        seeded.changes += changes
        return seeded, model

    def _listen(self, host: str, port: int) -> socket.socket:
        try:
            return listen(host, port)
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}. "
                "Choose other ports: make run ARGS='--port 8080 --speech-port 8081'."
            ) from None

    def _tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _greet(self, seeded: demo.Seeded, options: dict[str, Any], model: str) -> None:
        url = f"http://{options['host']}:{options['port']}"
        login = demo.EMAIL
        if seeded.password:
            login += f" / {seeded.password}"
        secrets = "".join(
            f"  {scope.label + ' key':14} {secret}\n" for scope, secret in seeded.keys.items()
        )
        if secrets:
            secrets = f"New keys, shown now and never again:\n{secrets}"
        else:
            svc = "svc" if settings.SVC_IS_INSTALLED else ".venv/bin/python manage.py"
            secrets = (
                "Keys were shown at the first start. For another one:\n"
                f"  {svc} keys create {demo.ORGANIZATION} --scope inference\n"
            )
        self.stdout.write(
            _GREETING.format(
                url=url,
                organization=Organization(name=demo.ORGANIZATION).slug,
                base_url=f"{url}/v1",
                speech_url=f"http://{options['host']}:{options['speech_port']}/v1",
                login=login,
                secrets=secrets,
                key=seeded.keys.get(Scope.INFERENCE, "$SVC_KEY"),
                speech_key=seeded.keys.get(Scope.SPEECH, "$SVC_SPEECH_KEY"),
                socket_url=f"ws://{options['host']}:{options['speech_port']}",
                voice=_NEURAL_VOICE if options["voices"] == "neural" else _VOICE,
                model=model,
                data=settings.SVC_DATA_DIR,
            )
        )
        self.stdout.flush()


def _list(text: str) -> list[str]:
    """The items of a list with commas between."""
    return [item.strip() for item in text.split(",") if item.strip()]


@contextmanager
def _neural_installation(voices: str | None, tell: Callable[[str], None]) -> Iterator[None]:
    """The installation of the neural engine in a process of its own, where it is missing.

    The server starts the engine once it is there, and speaks its voices where it is fast enough.
    """
    if voices is not None or files.missing(settings.SVC_NEURAL_DIR) is None:
        yield
        return
    tell(
        "Natural voices are being installed, 120 MB; plain ones speak until then. VOICES=plain: without."
    )
    process = subprocess.Popen(  # noqa: S603  # our own command line
        [*program_of(sys.argv[0]), "install_neural_voices"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # ended as a whole, with its pip
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, 19)
    waiting = threading.Thread(target=_tell_of_installation, args=(process, tell))
    waiting.start()
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        waiting.join()


def _tell_of_installation(process: subprocess.Popen[str], tell: Callable[[str], None]) -> None:
    _, errors = process.communicate()
    if process.returncode == 0:
        tell("Natural voices are installed; they speak once this machine is measured fast enough.")
    elif process.returncode > 0:
        tell(f"Natural voices cannot be installed; plain ones speak. {errors.strip()}")


def _check_free(port: int) -> None:
    """Raise ``CommandError`` where another program has the simulator's port.

    It would be taken for the simulator: whatever listens there takes connections.
    """
    try:
        listen("127.0.0.1", port).close()
    except OSError:
        raise _simulator_cannot_serve(port) from None


def _simulator_cannot_serve(port: int) -> CommandError:
    return CommandError(
        f"The model simulator cannot serve on port {port}. "
        "Choose another: make run ARGS='--simulator-port 9001'."
    )


@contextmanager
def _simulator(port: int) -> Iterator[None]:
    """The model simulator in a process of its own, while the server runs."""
    line = ParentEnd()
    process = subprocess.Popen(  # noqa: S603  # our own command line
        [
            *program_of(sys.argv[0]),
            *("simulate_backend", "--port", str(port)),
            *("--lifeline", str(line.descriptor)),
        ],
        stdout=subprocess.DEVNULL,
        pass_fds=[line.descriptor],
        # Ctrl-C goes to the server, which drains; the simulator must live until then.
        start_new_session=True,
    )
    line.close_worker_end()
    try:
        _wait_for(process, port)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        line.close()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _SIMULATOR_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _simulator_cannot_serve(port)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise CommandError(f"The model simulator did not start on port {port}.")
