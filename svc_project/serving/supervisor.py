"""The parent of ``serve``: starts the workers and the page process, keeps them alive, and replaces them
all by those of the next release while both serve.

It imports nothing but the standard library, so that it starts at once and takes little memory. What it
has to know of the settings it learns from the first worker.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, Final

from svc_project.serving.generation import Generation, NoPageSocket, Stage, program_of
from svc_project.serving.listeners import ListenersUnusable, bind, given
from svc_project.serving.state_file import State, StateFile

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.2
_RESTART_SECONDS: Final = 1.0
_READY_SECONDS: Final = 600.0
"""The time that the processes of a new release may take to become ready."""
_UNREADY_SECONDS: Final = 30.0
"""The time that they may be unready once all of them run."""
_MOST_STARTS: Final = 5
"""Processes that may end before any worker has ever become ready."""
_SAVED: Final = "SVC_PARENT_STATE"
"""The variable with what this process leaves to the program that it executes next; no setting."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class CannotServe(Exception):
    """``serve`` ends with ``status``; the message says why, or is empty where a child has said it."""

    def __init__(self, message: str = "", status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class Supervisor:
    """Keeps the processes of one generation alive, and reloads.

    SIGTERM and SIGINT end everything after a drain. SIGHUP starts the processes of the release that is
    now at the path of the program. When they are ready, those of the running release take no new
    connection and finish what runs, and this process executes the new program too, with the sockets kept.
    If one of them ends before that, nothing else changes. Where SIGHUP is ignored at the start, as
    under nohup, it stays so. ``reloads`` is False where the program serves within another one, which
    SIGHUP then ends.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], program: Sequence[str], reloads: bool
    ) -> None:
        self._sockets = sockets
        self._program = program
        self._reloads = reloads
        self._generations: list[Generation] = []
        """The serving one first, then one that starts, then those that leave."""
        self._is_stopping = False
        self._is_asked_to_reload = False
        self._failed_starts = 0
        self._reload_until = 0.0
        self._failure = ""
        self._state_file: StateFile | None = None

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; returns when every process has ended.

        Raises ``CannotServe`` and ``NoPageSocket`` when the first processes do not start.
        """
        self._handle_signals()
        if not self._generations:
            self._generations = [self._begun(1)]
        try:
            while not self._is_stopping:
                time.sleep(_LOOK_SECONDS)
                self._look()
        finally:
            self._end()

    def adopt(self, saved: Mapping[str, Any]) -> None:
        """Go on with the processes that the previous program of this process has started."""
        self._generations = [
            Generation.adopted(each, self._sockets, self._program) for each in saved["generations"]
        ]
        self._is_asked_to_reload = saved["is_asked_to_reload"]
        if saved["state_file"]:
            with contextlib.suppress(OSError):
                self._state_file = StateFile(*saved["state_file"])
        self._say()

    # -- one look ----------------------------------------------------------------------------

    @property
    def _serving(self) -> Generation:
        return self._generations[0]

    @property
    def _starting(self) -> Generation | None:
        return next((each for each in self._generations[1:] if each.stage is Stage.STARTING), None)

    def _look(self) -> None:
        for generation in self._generations:
            generation.look()
        self._generations = [
            each
            for each in self._generations
            if each.stage is not Stage.LEAVING or not each.has_ended()
        ]
        self._keep_alive(self._serving)
        if (starting := self._starting) is not None:
            self._follow(starting)
        # Not once all of its processes run: where one dies again and again, a reload is the remedy.
        elif self._is_asked_to_reload and self._serving.stage is Stage.SERVING:
            self._is_asked_to_reload = False
            self._begin_reload()

    def _keep_alive(self, generation: Generation) -> None:
        if generation.stage is Stage.STARTING:
            self._go_on_starting(generation)
        for child in generation.dead():
            if self._is_stopping:
                return
            status = child.process.status or 0
            if generation.plan is None:
                # It has said why, and would say it again.
                raise CannotServe(status=status if status > 0 else 1)
            self._failed_starts += 1
            if generation.stage is Stage.STARTING and self._failed_starts >= _MOST_STARTS:
                raise CannotServe(
                    f"No worker became ready: {child.name} is the {_MOST_STARTS}th process that "
                    f"ended, with {status}. Its own last lines say why."
                )
            # A process that dies at once must not make the parent loop without pause.
            time.sleep(_RESTART_SECONDS)
            generation.replace(child)

    def _go_on_starting(self, generation: Generation) -> None:
        generation.go_on_starting(self._free_numbers())
        if generation.plan is not None and self._state_file is None:
            self._open_state_file(generation.plan.state_file)
        if generation.first_is_ready:
            generation.stage = Stage.SERVING

    # -- reloading ---------------------------------------------------------------------------

    def _begin_reload(self) -> None:
        self._failure = ""
        self._reload_until = time.monotonic() + _READY_SECONDS
        self._generations.insert(1, self._begun(self._serving.number + 1, waits=True))
        log.info("generation %d starts, to take over", self._generations[1].number)
        self._say()

    def _follow(self, starting: Generation) -> None:
        """Let a generation take over that is ready, and give up one that does not get ready."""
        try:
            starting.go_on_starting(self._free_numbers())
        except NoPageSocket as error:
            self._give_up(starting, str(error))
            return
        if dead := starting.dead():
            ended = f"{dead[0].name} of the new release ended with {dead[0].process.status}"
            self._give_up(starting, f"{ended}. Its own last lines in the log say why.")
        elif time.monotonic() > self._reload_until:
            self._give_up(starting, self._unready(starting))
        elif starting.can_take_over:
            self._take_over(starting)
        elif starting.is_ready:
            self._reload_until = min(self._reload_until, time.monotonic() + _UNREADY_SECONDS)

    @staticmethod
    def _unready(starting: Generation) -> str:
        if starting.is_ready:
            return (
                f"The new release runs, but was not ready within {_UNREADY_SECONDS:.0f} s. Its own "
                "last lines in the log, and `svc doctor` of that release, say why."
            )
        return f"The new release was not ready after {_READY_SECONDS:.0f} s."

    def _give_up(self, starting: Generation, reason: str) -> None:
        self._failure = reason
        log.error("the reload failed and nothing has changed: %s", reason)
        starting.terminate()
        self._say()

    def _take_over(self, starting: Generation) -> None:
        serving = self._serving
        starting.take_over()
        self._generations.remove(starting)
        self._generations.insert(0, starting)
        serving.hand_over()
        log.info("generation %d serves; %d finishes what runs", starting.number, serving.number)
        self._execute()

    def _execute(self) -> None:
        """Replace this program by that of the new release; the processes go on."""
        saved: dict[str, Any] = {
            "sockets": [each.fileno() for each in self._sockets],
            "generations": [each.saved() for each in self._generations],
            "state_file": None,
        }
        if self._state_file is not None:
            saved["state_file"] = [self._state_file.path, self._state_file.descriptor]
            os.set_inheritable(self._state_file.descriptor, True)
        for each in self._sockets:
            each.set_inheritable(True)
        # A signal in between waits for the new program; one that came before must not be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        if self._is_stopping:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        saved["is_asked_to_reload"] = self._is_asked_to_reload
        program = [*self._program, *sys.argv[1:]]
        try:
            os.execve(program[0], program, {**os.environ, _SAVED: json.dumps(saved)})  # noqa: S606
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            log.error("the parent stays of the old release: %s", error)
            self._say()

    # -- beginning and ending ----------------------------------------------------------------

    def _handle_signals(self) -> None:
        for number in _SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._receive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self._reloads:
            self._is_asked_to_reload = True
        else:
            self._is_stopping = True

    def _begun(self, number: int, *, waits: bool = False) -> Generation:
        generation = Generation(number, self._sockets, self._program, waits=waits)
        generation.start_first(self._free_numbers()[0])
        return generation

    def _free_numbers(self) -> list[int]:
        used = {child.number for each in self._generations for child in each.children}
        return [number for number in range(len(used) + 1024) if number not in used]

    def _end(self) -> None:
        # The workers have copies; with the last one's the address is free.
        for each in self._sockets:
            each.close()
        for generation in self._generations:
            generation.terminate()
        while self._generations:
            time.sleep(_LOOK_SECONDS)
            for generation in self._generations:
                generation.look()
            self._generations = [each for each in self._generations if not each.has_ended()]

    def _open_state_file(self, path: str) -> None:
        try:
            self._state_file = StateFile(path)
        except BlockingIOError:
            log.warning(
                "another gateway holds %s, and 'reload' finds that one: give each a SVC_DATA_DIR of its own",
                path,
            )
        except OSError as error:
            log.warning("'reload' will not find this gateway: %s: %s", path, error.strerror)
        self._say()

    def _say(self) -> None:
        if self._state_file is None:
            return
        state = State(
            os.getpid(),
            self._serving.number,
            self._starting is not None,
            self._failure,
            takes_reloads=self._reloads and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN,
        )
        try:
            self._state_file.write(state)
        except OSError as error:
            log.warning("%s is not up to date: %s", self._state_file.path, error.strerror)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``serve``."""
    parser.add_argument("--host", default="127.0.0.1", help="address of both surfaces")
    parser.add_argument("--port", type=int, default=8000, help="port of the inference surface")
    parser.add_argument("--speech-port", type=int, help="port of the speech surface (8001)")
    parser.add_argument("--workers", type=int, help="worker processes (1)")


def serve(options: argparse.Namespace, *, reloads: bool) -> None:
    """Serve until a signal; returns when every process has ended. Raises ``CannotServe``."""
    _configure_log()
    if options.workers is not None:
        if options.workers < 1:
            raise CannotServe("--workers must be at least 1.", 2)
        os.environ["SVC_WORKERS"] = str(options.workers)
    saved = json.loads(os.environ.pop(_SAVED, "null"))
    sockets = _sockets(options, saved)
    # Workers tell the surfaces apart by the port.
    os.environ["SVC_SPEECH_PORT"] = str(_port_of(sockets[1]))
    if not saved:
        addresses = (f"http://{options.host}:{_port_of(each)}" for each in sockets)
        sys.stdout.write("inference on {}, speech on {}\n".format(*addresses))
        sys.stdout.flush()
    serve_on(sockets, reloads=reloads, saved=saved)


def serve_on(
    sockets: Sequence[socket.socket], *, reloads: bool, saved: Mapping[str, Any] | None = None
) -> None:
    """Serve on the sockets of the inference and of the speech surface until a signal.

    ``saved``: what the previous program of this process has left. Raises ``CannotServe``.
    """
    supervisor = Supervisor(sockets, program_of(sys.argv[0]), reloads)
    if saved:
        supervisor.adopt(saved)
    try:
        supervisor.run()
    except NoPageSocket as error:
        raise CannotServe(str(error)) from None


def main(arguments: Sequence[str]) -> int:
    """Run ``serve`` with ``arguments`` and return its exit status."""
    parser = argparse.ArgumentParser(prog="serve", description=serve.__doc__)
    add_arguments(parser)
    try:
        serve(parser.parse_args(arguments), reloads=True)
    except CannotServe as error:
        if str(error):
            sys.stderr.write(f"svc: {error}\n")
        return error.status
    return 0


def _sockets(options: argparse.Namespace, saved: Mapping[str, Any] | None) -> list[socket.socket]:
    if saved:
        kept = [socket.socket(fileno=number) for number in saved["sockets"]]
        for each in kept:
            each.set_inheritable(False)
        return kept
    try:
        if found := given(os.environ):
            return found
    except ListenersUnusable as error:
        raise CannotServe(str(error), 2) from None
    speech_port = options.speech_port if options.speech_port is not None else _speech_port()
    return [_bound(options.host, port) for port in (options.port, speech_port)]


def _bound(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    except OverflowError:
        raise CannotServe(f"A port must be a number from 0 to 65535, not {port}.", 2) from None
    except OSError as error:
        raise CannotServe(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from None


def _port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def _speech_port() -> int:
    """The setting ``SVC_SPEECH_PORT``; every other setting is read by the workers."""
    name, value = "SVC_SPEECH_PORT", os.environ.get("SVC_SPEECH_PORT", "8001")
    if path := os.environ.get(f"{name}_FILE"):
        try:
            with open(path, encoding="utf-8") as file:
                value = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise CannotServe(
                f"{name}_FILE names a file that cannot be read: {error}.", 2
            ) from None
    if not value.strip().isdecimal():
        raise CannotServe(f"{name} must be a whole number, not {value.strip()!r}.", 2)
    return int(value)


def _configure_log() -> None:
    """Write to standard error, as the workers do."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
