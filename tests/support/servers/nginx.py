"""nginx, with its files in a test's own directory."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live import free_port
from tests.support.servers.programs import debian_program, running

_AROUND = """
daemon off; user USER; pid DIR/pid; error_log DIR/error.log; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  HTTP
}
"""


@contextmanager
def running_nginx(directory: Path, http: str) -> Iterator[int]:
    """Run nginx with one worker process; ``http`` is for its block of that name.

    Yields the port at which it listens, which ``http`` calls PORT.
    """
    program, port = debian_program("nginx", "nginx-light"), free_port()
    configuration = directory / "nginx.conf"
    text = _AROUND.replace("USER", getpass.getuser()).replace("DIR", str(directory))
    configuration.write_text(text.replace("HTTP", http).replace("PORT", str(port)))
    log = directory / "error.log"
    with running([program, "-c", str(configuration), "-e", str(log)], port, log):
        yield port
