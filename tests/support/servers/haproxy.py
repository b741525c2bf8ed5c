"""HAProxy in front of the gateway: every client's requests over one connection behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live import free_port
from tests.support.servers.programs import debian_program, running

_CONFIGURATION = """
global
  nbthread 1
  maxconn 200
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 60s
  option http-keep-alive
  option forwardfor
  http-reuse always
frontend clients
  bind 127.0.0.1:PORT
  default_backend svc
backend svc
  server gateway 127.0.0.1:BEHIND pool-max-conn 1
"""


@contextmanager
def running_haproxy(directory: Path, behind: int) -> Iterator[int]:
    """Run HAProxy with one thread; yields its port."""
    program, port = debian_program("haproxy", "haproxy"), free_port()
    configuration = directory / "haproxy.cfg"
    text = _CONFIGURATION.replace("PORT", str(port)).replace("BEHIND", str(behind))
    configuration.write_text(text)
    # -db: in the foreground, in one process.
    with running([program, "-db", "-f", str(configuration)], port, directory / "haproxy.log"):
        yield port
