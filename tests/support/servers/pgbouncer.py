"""PgBouncer in front of PostgreSQL: each transaction may get another server connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live import free_port
from tests.support.servers.programs import debian_program, running

_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port=BEHIND user=USER
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = PORT
unix_socket_dir =
auth_type = any
pool_mode = MODE
server_round_robin = 1
default_pool_size = 4
min_pool_size = 4
max_client_conn = 200
ignore_startup_parameters = extra_float_digits, options
"""


@contextmanager
def running_pgbouncer(
    directory: Path, behind: int, user: str, *, pool_mode: str = "transaction"
) -> Iterator[int]:
    """Run PgBouncer before the PostgreSQL at ``behind``, as the role ``user``; yields its port."""
    program, port = debian_program("pgbouncer", "pgbouncer"), free_port()
    configuration = directory / "pgbouncer.ini"
    text = (
        _CONFIGURATION.replace("PORT", str(port))
        .replace("BEHIND", str(behind))
        .replace("MODE", pool_mode)
    )
    configuration.write_text(text.replace("USER", user))
    directory.chmod(0o755)
    configuration.chmod(0o644)
    # It refuses to run as root, which CI may be.
    arguments = [program, "-u", "nobody", str(configuration)]
    with running(arguments, port, directory / "pgbouncer.log"):
        yield port
