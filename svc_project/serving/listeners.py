"""Listening sockets: reserved by this process, or given by the service manager (sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Final

BACKLOG: Final = 2048
_FIRST_GIVEN: Final = 3
"""The first descriptor that a service manager passes on."""


class ListenersUnusable(Exception):
    """The sockets that the service manager gave are not the two that are needed."""


def bind(host: str, port: int) -> socket.socket:
    """Reserve an address; connections to it are refused until a process listens on the socket.

    So nobody waits for a start: a proxy tries the next server. Raises ``OSError`` when the address
    is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket, whose connections wait for a server. Raises ``OSError``."""
    listener = bind(host, port)
    try:
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def given(environment: MutableMapping[str, str]) -> list[socket.socket]:
    """Take the sockets of the inference and of the speech surface that a service manager has opened.

    None where it has opened none for this process. They are in that order, or named ``inference`` and
    ``speech`` (``FileDescriptorName=``). The variables are removed, so that no child takes them for its
    own. Raises ``ListenersUnusable``.
    """
    process, count, names = (
        environment.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    )
    if process != str(os.getpid()) or not count.isdecimal() or not int(count):
        return []
    sockets = [socket.socket(fileno=_FIRST_GIVEN + number) for number in range(int(count))]
    for each in sockets:
        each.set_inheritable(False)
    if len(sockets) != 2 or any(each.type != socket.SOCK_STREAM for each in sockets):
        raise ListenersUnusable(
            f"The service manager gave {count} sockets. Two stream sockets are needed: the one of "
            "the inference surface, then the one of the speech surface."
        )
    if names.split(":") == ["speech", "inference"]:
        sockets.reverse()
    return sockets
